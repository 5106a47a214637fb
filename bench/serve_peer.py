"""What the server is measured against: a classifier behind FastAPI, as one would write it.

`PEER` says which: `centroid` (scikit-learn), `faiss`, or `photo` (Pillow and ONNX Runtime); `DATA` is a
file of NumPy with the centres, `NETWORK` the network of `photo`, `SESSION_THREADS` how many threads it has.
"""

import io
import os

import numpy as np
import orjson
from fastapi import FastAPI, Request, Response

PEER = os.environ["PEER"]
data = np.load(os.environ["DATA"])
centres, names = data["centres"], data["names"].tolist()
app = FastAPI()


def answered(index, distance):
    body = {"class": names[index], "distance": float(distance)}
    return Response(orjson.dumps(body), media_type="application/json")


if PEER == "centroid":
    from sklearn.neighbors import NearestCentroid

    # a class has its centre twice: of one sample it can't tell a spread
    model = NearestCentroid().fit(np.tile(centres, (2, 1)), np.tile(np.arange(len(centres)), 2))

    def nearest(row):
        index = int(model.predict(row)[0])
        return index, np.linalg.norm(row[0] - model.centroids_[index])
else:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(centres.shape[1])
    index.add(centres)

    def nearest(row):
        distances, found = index.search(row, 1)
        return int(found[0, 0]), distances[0, 0]


if PEER == "photo":
    import onnxruntime
    from PIL import Image

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["SESSION_THREADS"])
    session = onnxruntime.InferenceSession(os.environ["NETWORK"], options)
    given = session.get_inputs()[0].name

    def features(photo):
        image = Image.open(io.BytesIO(photo))
        image.draft("RGB", (256, 256))
        factor = 256 / min(image.size)
        image = image.convert("RGB").resize([round(side * factor) for side in image.size],
                                            Image.Resampling.BILINEAR)
        left, top = (round((side - 224) / 2) for side in image.size)
        crop = image.crop((left, top, left + 224, top + 224))
        pixels = (np.asarray(crop, np.float32) / np.float32(255) - np.float32(0.498)) / np.float32(0.502)
        return session.run(None, {given: np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])})[0]

    @app.post("/photo")
    async def photo(request: Request):
        return answered(*nearest(features(await request.body())))

    @app.post("/features")
    async def seen(request: Request):
        return Response(orjson.dumps(features(await request.body())[0].tolist()))


@app.post("/ask")
async def ask(request: Request):
    row = np.asarray(orjson.loads(await request.body())["features"], dtype=np.float32)[np.newaxis]
    return answered(*nearest(row))
