//! `rdmascope report` on the record of a real run: made from the record alone, complete, and drawn
//! by a browser.

#[allow(unreachable_pub, reason = "shared with the tests of the report")]
#[path = "../../../report/tests/support/browser.rs"]
mod browser;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use browser::View;
use measure::record::Status;

use crate::support::{SMALL, Scratch, finish};

#[test]
fn a_report_is_made_again_from_the_record_alone() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    let first = fs::read(scratch.at("record/report.html")).unwrap();
    fs::rename(scratch.at("record"), scratch.at("moved")).unwrap();
    fs::remove_file(scratch.at("plan.toml")).unwrap();
    assert_eq!(scratch.succeed(&["report", "moved", "-o", "again.html"]), "again.html\n");
    assert_eq!(fs::read(scratch.at("again.html")).unwrap(), first, "the same report, byte for byte");
    assert_eq!(scratch.succeed(&["report", "moved"]), "moved/report.html\n");
    let parts = fs::read_dir(scratch.path()).unwrap().flatten();
    assert!(!parts.map(|f| f.file_name().into_string().unwrap()).any(|name| name.contains("part")));
}

#[test]
fn charts_are_written_as_files_for_papers() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    let printed = scratch.succeed(&["report", "record", "--figures", "charts"]);
    let paths: Vec<&str> = printed.lines().collect();
    assert!(!paths.is_empty() && paths.len().is_multiple_of(2), "{printed}");
    for path in paths {
        let text = fs::read_to_string(scratch.at(path)).unwrap();
        match path.rsplit('.').next() {
            Some("svg") => assert!(text.contains("<svg ") && text.ends_with("</svg>\n"), "{path}: {text}"),
            _ => assert!(text.starts_with("series,kind,") && text.contains(",measured,"), "{path}: {text}"),
        }
    }
    let experiment = "experiment = [{ name = \"one\", pattern = \"ping-pong\", iterations = 10 }]\n";
    scratch.write("plain.toml", format!("name = \"plain\"\ntitle = \"Plain\"\n{experiment}"));
    scratch.succeed(&["run", "plain.toml", "--out", "plain"]);
    scratch.refused(
        &["report", "plain", "--figures", "none"],
        1,
        &["the run has no figure that can be drawn"],
    );
    assert!(!scratch.at("none").exists());
}

/// A record that version 0.1.0 wrote: nine patterns, with samples, figures and a finding.
#[test]
fn a_record_of_0_1_0_still_gives_a_report() {
    let scratch = Scratch::on_one_cpu();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/0.1.0");
    fs::create_dir_all(scratch.at("old/samples")).unwrap();
    for directory in ["", "samples"] {
        let files = fs::read_dir(kept.join(directory)).unwrap().flatten().map(|entry| entry.path());
        for file in files.filter(|path| path.is_file()) {
            fs::copy(&file, scratch.at("old").join(directory).join(file.file_name().unwrap())).unwrap();
        }
    }
    let (run, points) = scratch.record("old");
    assert_eq!((run.program.version.as_str(), points.len()), ("0.1.0", 28));
    let ended = scratch.run(&["report", "old"]);
    assert_eq!(
        (ended.status, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), "old/report.html\n", "")
    );
    let html = fs::read_to_string(scratch.at("old/report.html")).unwrap();
    for shown in
        ["rdmascope 0.1.0", "small messages over RC take less than a second", "One way", "Throughput"]
    {
        assert!(html.contains(shown), "{shown} is not in the report");
    }
    assert!(!html.contains("cannot be read"), "samples are read");
    let printed = scratch.succeed(&["report", "--text", "old"]);
    for point in &points {
        assert!(printed.contains(&format!(" {}: ", point.experiment)), "{}: {printed}", point.experiment);
    }
    // 386 ns, as the old program printed.
    assert!(printed.contains("; 386 ns (n 50) [376, 406 ns]"), "{printed}");
    let ended = scratch.run(&["report", "old", "--figures", "charts"]);
    let tables = "rdmascope: no drawing of these figures, because they are tables: 1 (Latency)\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), tables));
    assert!(ended.stdout.contains("charts/figure-3-one-way.svg\n"), "{}", ended.stdout);
    let lost = "samples/000004-one_way.u64";
    fs::remove_file(scratch.at("old").join(lost)).unwrap();
    let ended = scratch.run(&["report", "old", "--figures", "charts"]);
    let told = "rdmascope: figure 3 (One way): some samples cannot be read and are not included: ";
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{told}{lost}: ")), "{}", ended.stderr);
    scratch.refused(&["run", "--resume", "old"], 2, &["old was measured by version 0.1.0, and this is"]);
}

#[test]
fn torn_and_older_records_are_read() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    let lines = fs::read_to_string(scratch.at("record/points.jsonl")).unwrap();
    // A kill in the middle of an append; samples that were lost; a field of a later version.
    let torn = &lines[..lines.len() - 100];
    let later = torn.replacen("{\"id\":1,", "{\"id\":1,\"field_of_a_later_version\":[1],", 1);
    fs::write(scratch.at("record/points.jsonl"), later).unwrap();
    fs::remove_file(scratch.at("record/samples/000000-0.u64")).unwrap();
    let ended = scratch.run(&["report", "record", "-o", "torn.html"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned - 1);
    let told = format!("rdmascope: 1 of {} points are missing: the run ended early\n", run.points_planned);
    assert_eq!(ended.stderr, told);
    let html = fs::read_to_string(scratch.at("torn.html")).unwrap();
    assert!(html.contains("000000-0.u64"), "the report says which samples are missing");
    let text = scratch.succeed(&["report", "record", "--text"]);
    let missing = format!(" 1 of {} points are missing: the run ended early\n", run.points_planned);
    assert!(text.ends_with(&missing), "{text}");
}

#[test]
fn samples_outside_of_the_record_are_not_read() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    let points = fs::read_to_string(scratch.at("record/points.jsonl")).unwrap();
    let secret = scratch.write("secret", [1; 160]);
    for path in ["../secret", secret.to_str().unwrap()] {
        let foreign = points.replace("samples/000000-0.u64", path);
        fs::write(scratch.at("record/points.jsonl"), foreign).unwrap();
        scratch.succeed(&["report", "record", "-o", "report.html"]);
        let html = fs::read_to_string(scratch.at("report.html")).unwrap();
        assert!(html.contains("leads out of the run"), "{path} was read");
    }
}

#[test]
fn a_report_does_not_wait_for_samples_that_never_come() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    let [pipe, link] = [0, 1].map(|rank| scratch.at(&format!("record/samples/000000-{rank}.u64")));
    fs::remove_file(&link).unwrap();
    symlink("/dev/zero", &link).unwrap();
    let ended = finish(scratch.shell("cd record/samples && rm 000000-0.u64 && mkfifo 000000-0.u64"));
    assert!(ended.status == Some(0) && !pipe.is_file(), "{ended:?}");
    scratch.succeed(&["report", "record", "-o", "report.html"]);
    let html = fs::read_to_string(scratch.at("report.html")).unwrap();
    assert!(html.contains("2 files of samples cannot be read"), "neither was measured");
    assert!(html.contains("000000-0.u64: it is not a regular file"), "the first is named");
}

#[test]
fn no_link_in_a_record_leads_its_report_elsewhere() {
    let scratch = Scratch::on_one_cpu();
    let victim = scratch.write("victim", "precious");
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    let report = scratch.at("record/report.html");
    let part = scratch.at("record/report.html.part");
    symlink(&victim, &part).unwrap();
    for target in [&victim, &scratch.at("absent"), Path::new("/dev/full"), Path::new("/proc/self/fd/1")] {
        fs::remove_file(&report).unwrap();
        symlink(target, &report).unwrap();
        assert_eq!(scratch.succeed(&["report", "record"]), "record/report.html\n");
        assert!(report.symlink_metadata().unwrap().is_file(), "the link to {target:?} is replaced");
        assert!(part.is_symlink(), "what the user has is left alone");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!scratch.at("absent").exists());
}

#[test]
fn a_report_leaves_the_files_beside_it_alone() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    scratch.write("page.part", "mine");
    assert_eq!(scratch.succeed(&["report", "record", "-o", "page"]), "page\n");
    assert_eq!(fs::read_to_string(scratch.at("page.part")).unwrap(), "mine");
    // Files of samples belong to the record, too, wherever the record says that they are.
    fs::rename(scratch.at("record/samples/000000-1.u64"), scratch.at("record/raw")).unwrap();
    let points = fs::read_to_string(scratch.at("record/points.jsonl")).unwrap();
    let moved = points.replace("samples/000000-1.u64", "raw");
    fs::write(scratch.at("record/points.jsonl"), moved).unwrap();
    let raw = fs::read(scratch.at("record/raw")).unwrap();
    for part in ["samples/000000-0.u64", "samples/new", "raw"] {
        let output = format!("record/{part}");
        scratch.refused(&["report", "record", "-o", &output], 2, &[part, "is part of the record"]);
    }
    assert_eq!(fs::read(scratch.at("record/raw")).unwrap(), raw);
    assert!(!scratch.at("record/samples/new").exists());
}

#[test]
fn a_report_goes_to_the_stream_that_the_user_names() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    let page = fs::read_to_string(scratch.at("record/report.html")).unwrap();
    // Links like those in /dev, because a test that fails must not write into /dev.
    symlink("/proc/self/fd/1", scratch.at("stdout")).unwrap();
    symlink("/proc/self/fd/2", scratch.at("stderr")).unwrap();
    assert!(scratch.succeed(&["report", "record", "-o", "stdout"]) == page, "to a pipe");
    for (name, number) in [("stdout", 1), ("stderr", 2)] {
        let redirected = format!("\"$0\" report record -o {name} {number}> to-{name}");
        let ended = finish(scratch.shell(&redirected));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(fs::read_to_string(scratch.at(&format!("to-{name}"))).unwrap() == page, "{name} to a file");
        assert!(scratch.at(name).is_symlink());
    }
    let fed = finish(scratch.shell("mkfifo f; cat f & \"$0\" report record -o f; wait"));
    assert!(fed.stdout == page, "to a named pipe");
}

#[test]
fn the_report_of_a_real_run_is_drawn_without_a_script_error() {
    let Some(browser) = browser::find_or_skip() else { return };
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["run", "quick", "--quick", "--out", "record"]);
    scratch.succeed(&["report", "record", "-o", "report.html"]);
    let html = fs::read_to_string(scratch.at("report.html")).unwrap();
    let (run, points) = scratch.record("record");
    let browse = tempfile::tempdir().unwrap();
    let timed = points.iter().find(|p| p.status == Status::Measured && p.latency.is_some()).unwrap();
    let hash = format!("histogram={}", timed.id);
    let seen = browser.open(&html, &View { hash: &hash, width: 1300, dark: false, axe: "" }, browse.path());
    assert!(seen.ready && seen.errors.is_empty(), "{seen:?}");
    let charts = run.figures.iter().filter(|f| serde_json::to_value(f.kind).unwrap() != "table").count();
    let drawn = seen.plots.iter().filter(|(id, traces)| id != "histogram" && *traces > 0).count();
    assert_eq!(drawn, charts, "every chart of the plan is drawn: {:?}", seen.plots);
    let histogram = seen.plots.iter().find(|(id, _)| id == "histogram");
    assert!(histogram.is_some_and(|(_, traces)| *traces >= 1), "the histogram opens: {seen:?}");
    for figure in &run.figures {
        assert!(html.contains(&figure.title), "{}", figure.title);
    }

    let phone = tempfile::tempdir().unwrap();
    let seen =
        browser.open(&html, &View { hash: "all-points", width: 390, dark: true, axe: "" }, phone.path());
    assert!(seen.ready && seen.errors.is_empty(), "{seen:?}");
    assert!(seen.widths.1 <= 390, "the page scrolls sideways on a phone: {:?}", seen.widths);
    assert_eq!(seen.fact("rows"), points.len().to_string());
}
