//! The report as a file: size, speed, safety of foreign text, and the tables that must stand in it.

mod fixture;

use std::time::Instant;

use fixture::Fixture;

fn html(fixture: &Fixture) -> String {
    let mut out = Vec::new();
    report::html::write(&fixture.run, &fixture.points, &fixture.samples(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_report_is_small_and_needs_nothing_else() {
    let start = Instant::now();
    let page = html(&Fixture::new());
    eprintln!("{} bytes in {:?}", page.len(), start.elapsed());
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    if let Ok(path) = std::env::var("REPORT_OUT") {
        std::fs::write(path, &page).unwrap();
    }
    let text = without_packed(&page);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "the page refers to {outside}");
    }
    assert!(text.contains("default-src 'none'"));
}

/// The page without its packed data and scripts.
fn without_packed(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(start) = rest.find("<script type=\"application/gzip;base64\"") {
        out += &rest[..start];
        rest = &rest[start..];
        rest = &rest[rest.find("</script>").unwrap()..];
    }
    out + rest
}
