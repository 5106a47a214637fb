//! Parquet and Arrow files: the batches of rows they hold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::Schema;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::columns::{Choice, Columns};
use super::npz::most_unpacked;
use super::parquet_guard;
use super::{FeatureFile, ReadOptions};
use ivoro::{Error, Result};

/// Rows decoded at a time; bounds what a forged page can make the decoder hold.
const BATCH: usize = 1024;
const ARROW_MAGIC: &[u8] = b"ARROW1";
const END_OF_STREAM: &[u8] = b"\xff\xff\xff\xff\0\0\0\0";

/// A Parquet file.
pub(super) fn read_parquet(
    path: &Path,
    bytes: Bytes,
    options: &ReadOptions,
) -> Result<FeatureFile> {
    guarded(path, || {
        let length = bytes.len();
        if parquet_guard::footer_is_forged(&bytes) {
            return Err(Error::malformed(path, "the footer holds a list that no Parquet file has"));
        }
        let contents = bytes.clone();
        let refuse =
            |error| Error::malformed(path, format!("not a readable Parquet file: {error}"));
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(refuse)?;
        check_claims(path, builder.metadata(), length)?;
        check_pages(path, builder.metadata(), &contents)?;
        let choice = Choice::new(path, builder.schema(), options)?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), choice.indices());
        let mut columns = Columns::new(path, choice, most_unpacked(length));
        let (schema, metadata) = (builder.schema().clone(), Arc::clone(builder.metadata()));
        let batches = builder.with_projection(mask).with_batch_size(BATCH).build();
        for batch in batches.map_err(refuse)? {
            let batch = batch.map_err(|error| {
                packed(path, &metadata).unwrap_or_else(|| unreadable(path, "Parquet", &error))
            });
            columns.push(&batch?)?;
        }
        finish(path, columns, &schema, options)
    })
}

/// The sentence for a column whose compression is not read, if there is one.
fn packed(path: &Path, metadata: &ParquetMetaData) -> Option<Error> {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let packed = columns.map(ColumnChunkMetaData::compression).find(|packed| {
        !matches!(packed, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_))
    })?;
    // without its level
    let packed = packed.to_string();
    let packed = packed.split('(').next().unwrap_or_default();
    let what = format!("compressed with {packed}; uncompressed, Snappy and Zstandard are read");
    Some(Error::malformed(path, what))
}

/// Refuses a file whose own footer claims more than a file of its length can reasonably hold.
fn check_claims(path: &Path, metadata: &ParquetMetaData, length: usize) -> Result<()> {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let sizes = columns.map(|column| column.uncompressed_size().max(column.num_values()));
    let claimed = sizes.fold(0_u64, |sum, size| {
        // A negative size is forged; as the largest number it is refused below.
        sum.saturating_add(u64::try_from(size).unwrap_or(u64::MAX))
    });
    let most = most_unpacked(length);
    if claimed > most {
        let what = format!(
            "the footer claims {claimed} bytes of data, \
             a file of {length} bytes may unpack to {most}"
        );
        return Err(Error::malformed(path, what));
    }
    Ok(())
}

/// Refuses pages whose headers would make the decoder run for ever or take memory for nothing.
fn check_pages(path: &Path, metadata: &ParquetMetaData, contents: &[u8]) -> Result<()> {
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let from = usize::try_from(start).ok().and_then(|start| contents.get(start..));
        // What lies outside the file is the decoder's to refuse.
        let size = usize::try_from(column.compressed_size()).unwrap_or(usize::MAX);
        let pages = from.map_or(&[][..], |from| &from[..size.min(from.len())]);
        parquet_guard::check_pages(pages, most_unpacked(contents.len())).map_err(|what| {
            Error::malformed(path, format!("column {}: a page {what}", column.column_path()))
        })?;
    }
    Ok(())
}

/// An Arrow IPC file: magic, a stream, a footer. The stream says all that is needed, so the
/// footer's offsets and lengths are not trusted, nor used.
pub(super) fn read_arrow_file(
    path: &Path,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<FeatureFile> {
    let truncated = || Error::malformed(path, "not a complete Arrow file: its end is missing");
    let body = bytes.strip_prefix(ARROW_MAGIC).and_then(|rest| rest.get(2..));
    let body =
        body.ok_or_else(|| Error::malformed(path, "not an Arrow file: the first bytes differ"))?;
    let body = body.strip_suffix(ARROW_MAGIC).ok_or_else(truncated)?;
    let (body, footer) = body.split_last_chunk::<4>().ok_or_else(truncated)?;
    let footer = usize::try_from(i32::from_le_bytes(*footer)).map_err(|_| truncated())?;
    let stream = body.len().checked_sub(footer).ok_or_else(truncated)?;
    // The footer was found, so the stream is complete, whether or not it says where it ends.
    let stream = without_padding(&body[..stream]);
    read_messages(path, stream.strip_suffix(END_OF_STREAM).unwrap_or(stream), options)
}

/// Writers fill up with zeros behind the magic, to a multiple of 8, 16, 32 or 64 bytes.
fn without_padding(body: &[u8]) -> &[u8] {
    let padding = body.iter().take(64 - ARROW_MAGIC.len()).take_while(|&&byte| byte == 0).count();
    &body[padding..]
}

/// An Arrow IPC stream. It may end without saying so, but then nothing tells a complete file from
/// one that lost its last rows, so the mark is required.
pub(super) fn read_arrow_stream(
    path: &Path,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<FeatureFile> {
    let messages = bytes.strip_suffix(END_OF_STREAM).ok_or_else(|| {
        Error::malformed(path, "not a complete Arrow stream: the end-of-stream mark is missing")
    })?;
    read_messages(path, messages, options)
}

fn read_messages(path: &Path, bytes: &[u8], options: &ReadOptions) -> Result<FeatureFile> {
    guarded(path, || {
        let refuse = |error| unreadable(path, "Arrow", &error);
        let mut decoder = StreamDecoder::new();
        let mut columns = None;
        let mut buffer = Buffer::from(bytes);
        while let Some(batch) = decoder.decode(&mut buffer).map_err(refuse)? {
            if columns.is_none() {
                let choice = Choice::new(path, batch.schema_ref(), options)?;
                columns = Some(Columns::new(path, choice, most_unpacked(bytes.len())));
            }
            if let Some(columns) = &mut columns {
                columns.push(&batch)?;
            }
        }
        decoder.finish().map_err(refuse)?;
        match (columns, decoder.schema()) {
            (Some(columns), Some(schema)) => finish(path, columns, &schema, options),
            _ => Err(Error::malformed(path, "there are no rows in this file")),
        }
    })
}

fn finish(
    path: &Path,
    columns: Columns<'_>,
    schema: &Schema,
    options: &ReadOptions,
) -> Result<FeatureFile> {
    let metadata = schema.metadata().iter();
    let metadata = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
    columns.finish(path, metadata, options)
}

fn unreadable(path: &Path, kind: &str, error: &arrow_schema::ArrowError) -> Error {
    let text = error.to_string();
    if kind.starts_with("Arrow") && text.contains("feature") {
        return Error::malformed(path, "compressed Arrow; only uncompressed Arrow is read");
    }
    Error::malformed(path, format!("not a readable {kind} file: {text}"))
}

/// The decoders are other people's; a file on which one of them panics is a damaged file.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    // Nothing outlives the closure but its result, so no half-changed state can be seen.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(Error::malformed(path, "the file is damaged in a way its decoder can't describe"))
    })
}
