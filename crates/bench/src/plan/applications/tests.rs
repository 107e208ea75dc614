use crate::axis;
use crate::plan::{Options, Plan, resolve};
use crate::point::{Carrier, Length, PointSpec};

const PROGRAM: &str = r#"
[[application]]
name = "a"
command = ["a", "-n", "{ranks}", "{input}", "{where}/{mode}"]
files = { input = "dir/in.txt" }
environment = { A = "1", B = "2" }
[[application.metric]]
name = "t"
pattern = '(?<value>\d+)'
[[mode]]
name = "fast"
environment = { B = "{where}" }
[variables]
where = "here"
[[experiment]]
name = "e"
pattern = "application"
[experiment.axes]
application = "a"
ranks = [1, 4]
mode = ["plain", "fast"]
mpi_transport = "tcp"
"#;

fn points(set: &[&str]) -> Vec<PointSpec> {
    let text = format!("name = \"x\"\ntitle = \"X\"\n{PROGRAM}");
    let plan = Plan::parse(&text, "x.toml", std::path::Path::new("/plans")).unwrap();
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    resolve(&plan, &Options { set, ..Options::default() }).unwrap().points
}

#[test]
fn a_point_has_the_program_with_its_values() {
    let points = points(&["where=there"]);
    assert_eq!(points.len(), 4);
    let point = &points[3];
    assert_eq!((point.message.endpoint, point.length), (Carrier::Program, Length::Iterations(1)));
    assert_eq!(axis::MODE.at(&point.axes), Some(Some("fast".to_owned())));
    assert!(!point.axes.contains_key("size_bytes") && point.has_launcher() && point.world().is_none());
    let spec = point.application.as_deref().unwrap();
    assert_eq!((spec.ranks, spec.base.as_deref()), (4, Some("/plans")));
    let words: Vec<_> =
        spec.application.command.iter().map(|word| spec.filled(word, None).unwrap()).collect();
    assert_eq!(words, ["a", "-n", "4", "in.txt", "there/fast"]);
    let variables = spec.variables();
    assert_eq!((variables["A"], variables["B"]), ("1", "{where}"));
    assert_eq!(spec.filled("{where} {dir}", Some("/tmp/x")).unwrap(), "there /tmp/x");
    assert_eq!(self::points(&[])[0].application.as_deref().unwrap().variables()["B"], "2");
}

#[test]
fn a_plan_in_no_directory_has_no_files_beside_it() {
    let text = format!("name = \"x\"\ntitle = \"X\"\n{PROGRAM}");
    let error =
        super::super::read::plan(&text, "plans/x.toml", super::Base::Bundled).unwrap_err().to_string();
    assert!(error.contains("no directory for the file \"dir/in.txt\": give the text"), "{error}");
}

/// A setting for all experiments applies to the experiments whose pattern has it.
#[test]
fn what_says_nothing_of_programs_is_set_for_the_others() {
    let text = format!(
        "name = \"x\"\ntitle = \"X\"\n{PROGRAM}[[experiment]]\nname = \"f\"\npattern = \"ping-pong\"\n"
    );
    let plan = Plan::parse(&text, "x.toml", std::path::Path::new("/plans")).unwrap();
    let set = ["size_bytes=8", "iterations=7", "repetitions=2", "where=\"a b\""].map(str::to_owned).to_vec();
    let points = resolve(&plan, &Options { set, ..Options::default() }).unwrap().points;
    assert_eq!(points.len(), 2 * 4 + 2);
    let last = points.last().unwrap();
    assert_eq!((last.message.size_bytes, last.length), (8, Length::Iterations(7)));
    assert_eq!(points[0].application.as_deref().unwrap().values["where"], "a b");
}
