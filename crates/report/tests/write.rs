//! The report as a file: size, speed, safety of foreign text, and its tables.

mod fixture;

use std::cell::Cell;
use std::time::Instant;

use bench::PATTERNS;
use fixture::Fixture;
use measure::figure::Unit;
use measure::finding::Scope;
use report::Points;

fn html(fixture: &Fixture) -> String {
    let mut out = Vec::new();
    report::html::write(&fixture.run, &fixture.points, PATTERNS, &fixture.samples(), &mut out).unwrap();
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

#[test]
fn distributions_are_counted_whole_beside_their_panels() {
    let fixture = Fixture::new();
    let page = html(&fixture);
    let figure = page.split("id=\"figure-10\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(figure.contains("Time from 0.0 ns to 10.00 us in bins of 50 ns"), "{figure}");
    let merged = |service: &str| {
        let is_shown = |p: &&measure::record::Point| {
            p.kinds.len() == 2
                && p.axes["service"] == service
                && p.axes["poll"] == "busy"
                && p.axes["size_bytes"] == 32
                && p.axes["operation"] == "send_imm"
        };
        let files = fixture.points.iter().filter(is_shown).filter_map(|p| p.kinds[0].samples.clone());
        let mut all: Vec<u64> = files.flat_map(|path| fixture.samples()(&path).unwrap()).collect();
        all.sort_unstable();
        all
    };
    for (service, bound) in [("RC", ""), ("UC", ""), ("UD", " ± 38")] {
        let all = merged(service);
        assert_eq!(all.len(), 4000, "two repetitions");
        let above = |ns: u64| all.iter().filter(|one| **one > ns).count();
        let percent = |ns: u64| format!("{:.4} %", above(ns) as f64 / 40.0);
        // 38 ns, plus one for rounding.
        let bounds = match bound {
            "" => String::new(),
            _ => format!(", {} to {}", percent(10_039), percent(9961)),
        };
        let outside = all.iter().filter(|ns| **ns >= 10_000).count();
        let row = format!(
            "<tr><th scope=\"row\">{service}</th><td>one_way</td><td>4,000</td><td>{}{bound}</td><td>{}{bound}</td>\
             <td>{}{bound}</td><td>{} ({}){bounds}</td><td>{outside}</td></tr>",
            all[0],
            all[1999],
            all[3999],
            percent(10_000),
            above(10_000),
        );
        assert!(figure.contains(&row), "{row}\n{figure}");
    }
    assert!(figure.contains("<td>completion</td><td>4,000</td><td>~"), "{figure}");
}

#[test]
fn findings_have_a_verdict_for_each_service() {
    let mut fixture = Fixture::new();
    fixture.run.findings.iter_mut().for_each(|finding| finding.scope = Some(Scope::Network));
    let page = html(&fixture);
    let table = page.split("<table class=\"findings\">").nth(1).unwrap().split("</section>").next().unwrap();
    let verdicts: Vec<&str> =
        table.split("<strong>").skip(1).map(|rest| rest.split("</strong>").next().unwrap()).collect();
    // The fixture is of the software device, which judges no claim about networks.
    let grey = "not judged";
    assert_eq!(
        verdicts,
        [grey, grey, "not measured", grey, grey, grey, grey, grey, grey, grey, grey],
        "{table}"
    );
    let would: Vec<&str> =
        table.split("would be ").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    let yes = "reproduced";
    assert_eq!(would, [yes, yes, "contradicted", yes, yes, yes, yes, yes, yes, yes], "{table}");
    assert!(table.contains("rank 1 has no completion channel"), "{table}");
}

/// If most points were far, the first line says so; if they were near, no word is said.
#[test]
fn a_run_of_cpus_that_were_far_says_so_before_anything_else() {
    let first_lines = |best_ns: f64| {
        let mut fixture = Fixture::new();
        fixture.points.iter_mut().filter_map(|point| point.calibration.as_mut()).for_each(|calibration| {
            calibration.best_ns = Some(best_ns);
        });
        let page = html(&fixture);
        let head = page.split("<header>").nth(1).unwrap().split("</p>").next().unwrap().to_owned();
        let shown = Points { points: &fixture.points, devices: &fixture.run.devices, patterns: PATTERNS };
        let text = report::terminal::tables(shown, Unit::GbPerS, None).unwrap();
        (head, text.lines().next().unwrap().to_owned(), page.contains("best known of these CPUs"))
    };
    let (head, line, is_told) = first_lines(10.0);
    assert!(head.starts_with("<p class=\"warnings\" role=\"note\">The whole run is unstable: "), "{head}");
    assert!(line.starts_with("! The whole run is unstable: "), "{line}");
    assert!(line.contains("at the median 58 ns against 10 ns, 5.8 times as much") && is_told, "{line}");
    let (head, line, is_told) = first_lines(50.0);
    assert!(head.contains("class=\"kicker\"") && line.is_empty() && is_told, "{head} {line}");
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

#[test]
fn a_report_is_written_to_anything_and_says_why_it_cannot_be() {
    let fixture = Fixture::new();
    let mut full: &mut [u8] = &mut [0; 16];
    let error = report::html::write(&fixture.run, &fixture.points, PATTERNS, &fixture.samples(), &mut full)
        .unwrap_err();
    assert!(error.to_string().starts_with("cannot write the report: "), "{error}");
}

/// Ten million samples at 500 ranks: less than 2 s (checked in release builds only) and 6 MB.
#[test]
fn ten_million_samples_are_quick_and_small() {
    let mut fixture = Fixture::new();
    let end = fixture.points.iter().find_map(|p| p.ends.first().cloned()).unwrap();
    let template = fixture.points.iter().find(|p| !p.ends.is_empty()).unwrap().clone();
    let first = fixture.points.len() as u64;
    for id in first..first + 250 {
        let mut point = template.clone();
        point.id = id;
        for (rank, kept) in point.ends.iter_mut().enumerate() {
            kept.clone_from(&end);
            kept.rank = rank as u32;
            // The samples are made up and have no statistics.
            kept.latency = None;
            kept.samples = Some(format!("samples/{id:06}-{rank}.u64"));
        }
        fixture.points.push(point);
    }
    let seed = |path: &str| path.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let samples: Vec<Vec<u64>> = (0..16)
        .map(|i| {
            let mut noise = fixture::Noise(i);
            (0..20_000).map(|_| noise.latency(820.0 + 7.0 * i as f64)).collect()
        })
        .collect();
    let loaded = Cell::new(0);
    let source = |path: &str| {
        let mut kept = samples[(seed(path) % 16) as usize].clone();
        let turn = seed(path) % 97;
        kept.iter_mut().for_each(|sample| *sample += turn);
        loaded.set(loaded.get() + kept.len());
        Ok::<_, String>(kept)
    };
    let start = Instant::now();
    let mut out = Vec::new();
    report::html::write(&fixture.run, &fixture.points, PATTERNS, &source, &mut out).unwrap();
    let took = start.elapsed();
    eprintln!("{} bytes in {took:?}", out.len());
    assert!(loaded.get() >= 10_000_000, "{}", loaded.get());
    assert!(out.len() < 6_000_000, "{} bytes", out.len());
    assert!(cfg!(debug_assertions) || took.as_secs_f64() < 2.0, "{took:?}");
}
