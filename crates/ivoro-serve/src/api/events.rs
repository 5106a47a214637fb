//! Changes of a model as they happen.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::app::App;
use crate::hosted::Event;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Asker, Path};

/// Seconds between signs of life, which also show that a listener has gone.
const ALIVE: Duration = Duration::from_secs(15);

/// Changes of a model as server-sent events: one at once with the model as it is, and one for each change.
#[utoipa::path(get, path = "/api/v1/models/{model}/events", tag = "models", params(("model" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = Event), (status = 404, body = ProblemBody)))]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Sse<impl Stream<Item = Result<Message, Infallible>>>, Problem> {
    let hosted = app.store.get(&model)?;
    let receiver = hosted.listen();
    let first = Event::of(&hosted.snapshot());
    drop(hosted);
    let closing = app.closing.subscribe();
    let listening = Listening { first: Some(first), receiver, closing };
    let stream = unfold(listening, Listening::next);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)))
}

/// Somebody who listens.
struct Listening {
    first: Option<Event>,
    receiver: Receiver<Event>,
    closing: watch::Receiver<bool>,
}

impl Listening {
    async fn next(mut self) -> Option<(Result<Message, Infallible>, Self)> {
        let event = match self.first.take() {
            Some(event) => event,
            None => loop {
                let received = tokio::select! {
                    received = self.receiver.recv() => received,
                    _ = self.closing.changed() => return None,
                };
                match received {
                    Ok(event) => break event,
                    // who is slow hears of the newest
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            },
        };
        let message = Message::default().event("changed").data(super::reply::json(&event));
        Some((Ok(message), self))
    }
}
