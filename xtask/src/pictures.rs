//! `cargo xtask pictures`: makes the pictures of the documents from a real run.

use anyhow::{Context, Result, ensure};

use crate::shell;

/// The browser without a window: it waits until the scripts of the page have drawn.
const BROWSER: [&str; 8] = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--virtual-time-budget=10000",
    "--window-size=1300,1150",
    "--blink-settings=preferredColorScheme=1",
];

/// Measures the plan `quick`, and makes `docs/report.png` of the first screen of its report.
pub(crate) fn run() -> Result<()> {
    let out = shell::root().join("target/pictures");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    let directory = out.to_string_lossy().into_owned();
    let measure = ["cargo", "run", "--release", "--quiet", "--", "run", "quick", "--out", directory.as_str()];
    shell::run(&measure)?;
    let picture = shell::root().join("docs/report.png");
    let shot = format!("--screenshot={}", picture.display());
    let profile = format!("--user-data-dir={directory}/profile");
    let page = format!("file://{directory}/report.html");
    shell::run_quietly(&[&BROWSER[..], &[&shot, &profile, &page]].concat())?;
    let bytes = std::fs::metadata(&picture).context("the browser wrote no picture")?.len();
    ensure!(bytes > 10_000, "{} has {bytes} B: look at it", picture.display());
    println!("{}", picture.display());
    Ok(())
}
