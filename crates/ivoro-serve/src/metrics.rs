//! What the server counts, for Prometheus.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Seconds of a request that are told apart.
const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0];
/// Of the mean strangeness, how much a new answer counts.
const NEW: f64 = 0.01;

const ABOUT: Metadata<'static> = Metadata::new("ivoro", Level::INFO, None);

/// Counters that are held, so that counting looks nothing up.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    ask_seconds: Histogram,
    answers: Counter,
    unknown: Counter,
    lessons: Counter,
    samples: Counter,
    writes: Counter,
    strangeness: std::sync::Mutex<Option<f64>>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets(&BUCKETS).unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        let counter = |name: &'static str| recorder.register_counter(&Key::from_name(name), &ABOUT);
        let histogram =
            |name: &'static str| recorder.register_histogram(&Key::from_name(name), &ABOUT);
        Self {
            ask_seconds: histogram("ivoro_ask_seconds"),
            answers: counter("ivoro_answers_total"),
            unknown: counter("ivoro_answers_unknown_total"),
            lessons: counter("ivoro_lessons_total"),
            samples: counter("ivoro_samples_taught_total"),
            writes: counter("ivoro_writes_total"),
            strangeness: std::sync::Mutex::new(None),
            handle,
            recorder,
        }
    }

    /// A request was answered with this status; `route` is a pattern, never what a client wrote.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let labels =
            vec![Label::new("route", route.to_owned()), Label::new("status", status.to_string())];
        let key = Key::from_parts("ivoro_requests_total", labels);
        self.recorder.register_counter(&key, &ABOUT).increment(1);
        let labels = vec![Label::new("route", route.to_owned())];
        let key = Key::from_parts("ivoro_request_seconds", labels);
        self.recorder.register_histogram(&key, &ABOUT).record(took.as_secs_f64());
    }

    /// Queries were answered.
    pub(crate) fn asked(&self, answers: &[ivoro::Prediction], took: Duration) {
        self.ask_seconds.record(took.as_secs_f64());
        self.answers.increment(answers.len() as u64);
        let unknown = answers.iter().filter(|answer| answer.unknown == Some(true)).count();
        if unknown > 0 {
            self.unknown.increment(unknown as u64);
        }
        let mut mean = crate::held::hold(&self.strangeness);
        for strangeness in answers.iter().filter_map(|answer| answer.strangeness) {
            *mean = Some(mean.map_or(strangeness, |mean| mean + NEW * (strangeness - mean)));
        }
    }

    /// Samples were taught, and are on disk.
    pub(crate) fn taught(&self, samples: u64) {
        self.samples.increment(samples);
    }

    /// So many changes shared a write.
    pub(crate) fn wrote(&self, changes: usize) {
        self.lessons.increment(changes as u64);
        self.writes.increment(1);
    }

    /// A number of a model as it is now.
    pub(crate) fn gauge(&self, name: &'static str, model: &str, value: f64) {
        let key = Key::from_parts(name, vec![Label::new("model", model.to_owned())]);
        let gauge: Gauge = self.recorder.register_gauge(&key, &ABOUT);
        gauge.set(value);
    }

    /// All as text.
    pub(crate) fn render(&self) -> String {
        if let Some(mean) = *crate::held::hold(&self.strangeness) {
            let key = Key::from_name("ivoro_strangeness_mean");
            self.recorder.register_gauge(&key, &ABOUT).set(mean);
        }
        self.handle.run_upkeep();
        self.handle.render()
    }

    /// Puts what was measured together, so that it does not grow.
    pub(crate) fn settle(&self) {
        self.handle.run_upkeep();
    }
}
