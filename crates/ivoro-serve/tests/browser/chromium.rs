//! A browser of its own for each test, driven over WebDriver.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything on the page may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The name that WebDriver gives to elements in its answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// What is off is what Chromium would ask of other machines by itself.
const FLAGS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--window-size=1280,900",
];

/// Keys as WebDriver writes them.
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const TAB: &str = "\u{e004}";

/// A browser with an empty profile.
pub(crate) struct Browser {
    driver: Child,
    agent: ureq::Agent,
    session: String,
    profile: TempDir,
}

impl Browser {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is missing: apt-get install chromium chromium-driver");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let started = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // whatever it says later is not read, and must not block it
        std::thread::spawn(move || lines.for_each(drop));
        let port = started.expect("chromedriver says its port");
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent = ureq::Agent::new_with_config(config.timeout_global(Some(2 * PATIENCE)).build());
        let profile = tempfile::tempdir().unwrap();
        let session = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self { driver, agent, session, profile };
        browser.begin(flags);
        browser
    }

    fn begin(&mut self, flags: &[&str]) {
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        let flags: Vec<&str> =
            FLAGS.iter().chain(flags).copied().chain([profile.as_str()]).collect();
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        });
        let begun =
            self.call("POST", "", &json!({ "capabilities": { "alwaysMatch": capabilities } }));
        self.session = format!("{}/{}", self.session, begun["sessionId"].as_str().unwrap());
        self.cdp(
            "Browser.setDownloadBehavior",
            &json!({ "behavior": "allow", "downloadPath": self.profile.path() }),
        );
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.session))
            .header("Content-Type", "application/json");
        // the driver wants no body where there is none
        let answer = if body.is_null() {
            self.agent.run(request.body(()).unwrap())
        } else {
            self.agent.run(request.body(body.to_string()).unwrap())
        };
        let mut answer = answer.map_err(|error| error.to_string())?;
        let limit = answer.body_mut().with_config().limit(256 << 20);
        let text = limit.read_to_string().map_err(|error| error.to_string())?;
        let mut value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("{method} {path}: {}", value["value"]["message"]));
        }
        Ok(value["value"].take())
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        self.ask(method, path, body).unwrap()
    }

    #[track_caller]
    pub(crate) fn open(&self, address: &str) {
        self.call("POST", "/url", &json!({ "url": address }));
    }

    #[track_caller]
    pub(crate) fn reload(&self) {
        self.call("POST", "/refresh", &json!({}));
    }

    /// What the body of a function returns.
    #[track_caller]
    pub(crate) fn script(&self, code: &str) -> Value {
        self.call("POST", "/execute/sync", &json!({ "script": code, "args": [] }))
    }

    /// The value of an expression.
    #[track_caller]
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.script(&format!("return {expression}"))
    }

    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> String {
        let found = self.value(&format!("document.querySelector({css:?})?.innerText ?? null"));
        found.as_str().unwrap_or_else(|| panic!("no {css}")).to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait(&self, expression: &str) {
        let began = Instant::now();
        while self.value(&format!("Boolean({expression})")) != json!(true) {
            if began.elapsed() > PATIENCE {
                let text = self.value("document.body.innerText");
                let log = self.log();
                panic!(
                    "waited for {expression}; the page says\n{}\n{log:?}",
                    text.as_str().unwrap_or("")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until an element is to be seen and its text contains this.
    #[track_caller]
    pub(crate) fn wait_text(&self, css: &str, text: &str) {
        self.wait(&format!(
            "[...document.querySelectorAll({css:?})].some((one) => one.checkVisibility() && one.innerText.replaceAll('\\u00a0', ' ').includes({text:?}))"
        ));
    }

    #[track_caller]
    fn element(&self, css: &str) -> String {
        let found =
            self.call("POST", "/element", &json!({ "using": "css selector", "value": css }));
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        let element = self.element(css);
        self.call("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Clicks the first button or link in `css` that is to be seen and says this.
    #[track_caller]
    pub(crate) fn click_text(&self, css: &str, text: &str) {
        let found = format!(
            "[...document.querySelectorAll({css:?})].find((one) => one.checkVisibility() && one.innerText.trim() === {text:?})"
        );
        self.wait(&found);
        let element = self.value(&found);
        let element = element[ELEMENT].as_str().unwrap();
        self.call("POST", &format!("/element/{element}/click"), &json!({}));
    }

    #[track_caller]
    pub(crate) fn type_into(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.call("POST", &format!("/element/{element}/clear"), &json!({}));
        self.call("POST", &format!("/element/{element}/value"), &json!({ "text": text }));
    }

    /// Gives files to a file field, as choosing them does.
    #[track_caller]
    pub(crate) fn choose(&self, css: &str, files: &[PathBuf]) {
        let element = self.element(css);
        let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
        self.call(
            "POST",
            &format!("/element/{element}/value"),
            &json!({ "text": names.join("\n") }),
        );
    }

    /// Drops files and folders on an element, as from the desktop.
    #[track_caller]
    pub(crate) fn drop_on(&self, css: &str, files: &[PathBuf]) {
        let place = self.value(&format!(
            "(() => {{ const box = document.querySelector({css:?}).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for kind in ["dragEnter", "dragOver", "drop"] {
            let data = json!({ "items": [], "files": files, "dragOperationsMask": 1 });
            self.cdp(
                "Input.dispatchDragEvent",
                &json!({ "type": kind, "x": place[0], "y": place[1], "data": data }),
            );
        }
    }

    /// Presses keys one after the other, wherever the focus is.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        let presses = keys.chars().flat_map(|key| {
            ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
        });
        self.actions(
            &json!({ "type": "key", "id": "keys", "actions": presses.collect::<Vec<_>>() }),
        );
    }

    /// Holds the pointer down on an element.
    #[track_caller]
    pub(crate) fn hold(&self, css: &str, time: Duration) {
        let origin = json!({ ELEMENT: self.element(css) });
        let milliseconds = u64::try_from(time.as_millis()).unwrap();
        self.actions(&json!({ "type": "pointer", "id": "mouse", "actions": [
            { "type": "pointerMove", "origin": origin, "x": 0, "y": 0 },
            { "type": "pointerDown", "button": 0 },
            { "type": "pause", "duration": milliseconds },
            { "type": "pointerUp", "button": 0 },
        ] }));
    }

    #[track_caller]
    fn actions(&self, source: &Value) {
        self.call("POST", "/actions", &json!({ "actions": [source] }));
    }

    /// A command of the DevTools protocol.
    #[track_caller]
    pub(crate) fn cdp(&self, command: &str, parameters: &Value) -> Value {
        self.call("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// A phone of this many pixels.
    pub(crate) fn phone(&self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 2, "mobile": true });
        self.cdp("Emulation.setDeviceMetricsOverride", &size);
    }

    pub(crate) fn dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.cdp("Emulation.setEmulatedMedia", &features);
    }

    /// Waits for a file that the page has downloaded.
    #[track_caller]
    pub(crate) fn downloaded(&self, name: &str) -> PathBuf {
        let path = self.profile.path().join(name);
        let began = Instant::now();
        while !path.exists() {
            assert!(began.elapsed() < PATIENCE, "{name} was not downloaded");
            std::thread::sleep(Duration::from_millis(50));
        }
        path
    }

    /// What the console got, with its level.
    pub(crate) fn log(&self) -> Vec<(String, String)> {
        self.logged("browser", |entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            Some((text("level"), text("message")))
        })
    }

    /// Addresses of all requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.logged("performance", |entry| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let sent = &event["message"];
            (sent["method"] == "Network.requestWillBeSent").then_some(())?;
            Some(sent["params"]["request"]["url"].as_str()?.to_owned())
        })
    }

    fn logged<T>(&self, kind: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let entries = self.ask("POST", "/se/log", &json!({ "type": kind })).unwrap_or_default();
        entries.as_array().into_iter().flatten().filter_map(read).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // the session may have ended by itself
        let _ = self.ask("DELETE", "", &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
