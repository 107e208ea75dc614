//! A report opened in a real browser, headless: which charts are drawn, and every error of its
//! scripts.
//!
//! Plain Rust over the standard library, so that other crates' tests can include it with `#[path]`.
//! The page under test is a copy of the report with one more script. That script watches from
//! before the first of the page's own scripts runs, and writes down its observations when the page
//! says that it is ready.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A browser that can be driven.
pub(crate) struct Browser {
    program: PathBuf,
}

/// How to open a report.
pub(crate) struct View<'a> {
    /// The part after `#`, e.g. `histogram=12`; may be empty.
    pub(crate) hash: &'a str,
    /// Width of the window.
    pub(crate) width: u32,
    /// Whether the system prefers dark.
    pub(crate) dark: bool,
    /// The text of axe-core, which then examines the page with everything opened; may be empty.
    pub(crate) axe: &'a str,
}

/// The observations of the watching script.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Whether the page finished drawing.
    pub(crate) ready: bool,
    /// Errors of scripts, unhandled rejections, refused loads, messages of level error on the
    /// console.
    pub(crate) errors: Vec<String>,
    /// Charts: id of the element, number of traces drawn in an `svg.main-svg`.
    pub(crate) plots: Vec<(String, usize)>,
    /// Width of the window, and of the content that would be scrolled sideways in it.
    pub(crate) widths: (u64, u64),
    /// Other facts by name.
    pub(crate) facts: Vec<(String, String)>,
}

/// A browser that runs longer than this has hung.
const DEADLINE: Duration = Duration::from_secs(120);

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Finds the browser. Without one, prints so and returns `None`, or fails if `RDMASCOPE_REQUIRE`
/// names `browser`.
pub(crate) fn find_or_skip() -> Option<Browser> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .find(|candidate| candidate.is_file());
    if let Some(program) = program {
        return Some(Browser { program });
    }
    let message = "no chromium found (apt-get install chromium)";
    let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == "browser"), "a browser is required: {message}");
    eprintln!("SKIPPED: {message}");
    None
}

impl Browser {
    /// Opens a report in a scratch directory of the caller and returns the observations.
    pub(crate) fn open(&self, html: &str, view: &View<'_>, scratch: &Path) -> Seen {
        let page = scratch.join("watched.html");
        fs::write(&page, watched(html, view.axe)).unwrap();
        let frame = scratch.join("frame.html");
        fs::write(&frame, framed(view)).unwrap();
        let (dom, log) = self.run(&frame, view, scratch);
        let mut seen = Seen::parse(&dom);
        let console =
            log.lines().filter(|l| l.contains(":CONSOLE") && l.contains(&scratch.display().to_string()));
        seen.errors.extend(console.filter(|l| l.contains("ror")).map(str::to_owned));
        seen
    }

    fn run(&self, page: &Path, view: &View<'_>, scratch: &Path) -> (String, String) {
        let dom = scratch.join("dom.html");
        let log = scratch.join("log.txt");
        let mut child = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--hide-scrollbars", "--virtual-time-budget=30000", "--enable-logging=stderr", "--v=0"])
            .arg(format!("--blink-settings=preferredColorScheme={}", if view.dark { 0 } else { 1 }))
            .arg("--window-size=1400,1000")
            .arg(format!("--user-data-dir={}", scratch.join("profile").display()))
            .arg("--dump-dom")
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .stdout(File::create(&dom).unwrap())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > DEADLINE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the browser did not end within {DEADLINE:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        (read(&dom), read(&log))
    }
}

impl Seen {
    /// The value of a fact.
    pub(crate) fn fact(&self, name: &str) -> &str {
        self.facts.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The rules that the page breaks, each with its impact, the number of elements and the first.
    pub(crate) fn violations(&self) -> impl Iterator<Item = &String> {
        self.facts.iter().filter(|(name, _)| name == "violation").map(|(_, text)| text)
    }

    fn parse(dom: &str) -> Self {
        let mut seen = Self::default();
        let start = "<pre id=\"browser-check\">";
        let Some(at) = dom.find(start) else {
            seen.errors.push("the page holds no result of the watching script".to_owned());
            return seen;
        };
        let text = &dom[at + start.len()..];
        let text = text.split("</pre>").next().unwrap_or_default();
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        for line in text.lines() {
            let mut words = line.split('\t');
            match (words.next(), words.next(), words.next()) {
                (Some("ready"), _, _) => seen.ready = true,
                (Some("error"), Some(text), _) => seen.errors.push(text.to_owned()),
                (Some("plot"), Some(id), Some(traces)) => {
                    seen.plots.push((id.to_owned(), traces.parse().unwrap_or(0)));
                }
                (Some("widths"), Some(window), Some(page)) => {
                    seen.widths = (window.parse().unwrap_or(0), page.parse().unwrap_or(u64::MAX));
                }
                (Some(name), Some(value), _) => seen.facts.push((name.to_owned(), value.to_owned())),
                _ => {}
            }
        }
        seen
    }
}

/// A page that shows the report in a frame of any width (a headless window is never below 500
/// pixels wide), and takes the watching script's result.
fn framed(view: &View<'_>) -> String {
    let hash =
        if view.hash.is_empty() { String::new() } else { format!("#{}", view.hash.replace('&', "&amp;")) };
    format!(
        "<!doctype html><body><iframe src=\"watched.html{hash}\" width=\"{}\" height=\"900\"></iframe><script>\
         addEventListener('message', (event) => {{ const pre = document.createElement('pre'); \
         pre.id = 'browser-check'; pre.textContent = event.data; document.body.append(pre); }});</script>",
        view.width
    )
}

/// The report with the watching script before all others, under the nonce that the page requires.
fn watched(html: &str, axe: &str) -> String {
    let nonce =
        html.split("<script nonce=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    html.replacen("<head>", &format!("<head>\n<script nonce=\"{nonce}\">{axe}\n{WATCH}</script>"), 1)
}

const WATCH: &str = include_str!("watch.js");
