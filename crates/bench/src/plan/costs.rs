//! The rows of figures of the kind `costs`, and the check that the plan measures what they compare.

use measure::figure::{CostRow, Figure};
use measure::selection::{self, EXPERIMENT};
use serde_json::Value;

use super::findings::repetitions;
use super::model::Plan;
use super::names::known;
use super::quantities;
use crate::Error;
use crate::axis;
use crate::point::PointSpec;

/// Checks the rows of a figure. An error is the end of a sentence that starts with the figure.
pub(super) fn check(plan: &Plan, figure: &Figure) -> Result<(), String> {
    figure.rows.iter().try_for_each(|row| {
        row_check(plan, row)
            .map_err(|reason| format!("has a row {:?} that cannot be filled: {reason}", row.what))
    })
}

fn row_check(plan: &Plan, row: &CostRow) -> Result<(), String> {
    let experiments: Vec<&str> = plan.experiments.iter().map(|known| known.name.as_str()).collect();
    for name in &row.experiments {
        known("experiment", name, &experiments)?;
    }
    let apart = [axis::NAMES.as_slice(), &[EXPERIMENT]].concat();
    for name in row.modes.iter().chain(&row.each).chain(row.only.keys()) {
        known("axis", name, &apart)?;
    }
    if row.experiments.is_empty() {
        return Err("it has no experiment: name the experiments to compare".to_owned());
    }
    if row.modes.is_empty() {
        return Err("it has no modes: name the axes whose values are the modes".to_owned());
    }
    let quantity = row.y.as_str();
    quantities::check_of(plan, &row.experiments, quantity)
        .map_err(|hint| format!("unknown quantity {quantity:?}{hint}"))?;
    let dimension = quantities::dimension(quantity);
    if let Some(unit) = row.unit.filter(|unit| dimension != Some(unit.dimension())) {
        return Err(format!("{quantity} is not measured in {unit}"));
    }
    if row.better.is_none() && !quantities::is_better_known(quantity) {
        return Err(format!(
            "rdmascope does not know whether less or more is better for {quantity}: add better = \"less\" or \"more\""
        ));
    }
    Ok(())
}

/// Checks that every row has points, and that all points of one mode are repetitions.
pub(super) fn points(plan: &Plan, all: &[PointSpec]) -> Result<(), Error> {
    for (index, figure) in plan.figures.iter().enumerate() {
        for row in &figure.rows {
            let picked = all.iter().filter(|spec| row.picks(&spec.experiment, &spec.axes));
            let apart = [row.each.as_slice(), &row.modes].concat();
            let cell =
                |spec: &PointSpec| Value::from(selection::values(&apart, &spec.experiment, &spec.axes));
            let checked = match repetitions(picked, cell) {
                Ok(0) => Err("the plan has no such point".to_owned()),
                Ok(_) => Ok(()),
                Err(axis) => Err(format!(
                    "it needs one number, but its points differ in {axis}: give {axis} a value in where, or add it to \
                     each or modes"
                )),
            };
            checked.map_err(|reason| Error::Plan {
                place: plan.place_of_figure(index).to_owned(),
                words: format!(
                    "the figure {:?} has a row {:?} that cannot be filled: {reason}",
                    figure.title, row.what
                ),
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Options, Plan, Resolved, resolve};
    use crate::Error;

    /// A plan over two services and two sizes, with these lines in a row of its figure.
    fn resolved(row: &str) -> Result<Resolved, Error> {
        let text = format!(
            "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"lat\"\npattern = \"ping-pong\"\n\
             axes = {{ service = [\"RC\", \"UC\"], size_bytes = [4, 65536] }}\n\
             [[figure]]\nkind = \"costs\"\ntitle = \"T\"\n{row}"
        );
        resolve(&Plan::parse(&text, "x.toml", Path::new("."))?, &Options::default())
    }

    fn refusal(row: &str) -> String {
        let row = format!("[[figure.row]]\nwhat = \"W\"\n{row}");
        let error = resolved(&row).unwrap_err().to_string();
        let start = "x.toml:7: the figure \"T\" has a row \"W\" that cannot be filled: ";
        error.strip_prefix(start).expect(&error).to_owned()
    }

    #[test]
    fn a_row_compares_repetitions_alone() {
        let row = "experiments = [\"lat\"]\ny = \"latency.p50_ns\"\nmodes = [\"service\"]\n";
        assert_eq!(
            refusal(row),
            "it needs one number, but its points differ in size_bytes: give size_bytes a value in where, or add it to \
             each or modes"
        );
        assert_eq!(refusal(&format!("{row}where = {{ size_bytes = 8 }}")), "the plan has no such point");
        let whole = format!("[[figure.row]]\nwhat = \"W\"\n{row}");
        assert!(resolved(&format!("{whole}each = [\"size_bytes\"]")).is_ok());
        let one = resolved(&format!("{whole}where = {{ size_bytes = \"64KiB\" }}")).unwrap();
        assert_eq!(one.figures[0].rows[0].only["size_bytes"], 65536, "read as the axis is");
    }

    #[test]
    fn a_row_names_what_there_is() {
        let row = |lines: &str| refusal(&format!("y = \"latency.p50_ns\"\nmodes = [\"service\"]\n{lines}"));
        assert_eq!(row("experiments = [\"late\"]"), "unknown experiment \"late\": did you mean \"lat\"?");
        assert_eq!(row("experiments = []"), "it has no experiment: name the experiments to compare");
        assert_eq!(
            row("experiments = [\"lat\"]\neach = [\"size\"]"),
            "unknown axis \"size\": did you mean \"size_bytes\"?"
        );
        assert_eq!(row("experiments = [\"lat\"]\nunit = \"MB/s\""), "latency.p50_ns is not measured in MB/s");
        let no_modes = "experiments = [\"lat\"]\ny = \"latency.p50_ns\"\nmodes = []";
        assert_eq!(refusal(no_modes), "it has no modes: name the axes whose values are the modes");
        assert_eq!(
            refusal("experiments = [\"lat\"]\ny = \"counters.rnr_waits\"\nmodes = [\"service\"]"),
            "rdmascope does not know whether less or more is better for counters.rnr_waits: add better = \"less\" or \
             \"more\""
        );
    }

    #[test]
    fn only_figures_of_costs_have_rows_and_they_need_some() {
        let error = |figure: &str| resolved(figure).unwrap_err().to_string();
        assert_eq!(
            error(""),
            "x.toml:7: the figure \"T\" cannot be read: it has no [[figure.row]], which the kind costs needs"
        );
        assert_eq!(
            error("experiments = [\"lat\"]"),
            "x.toml:7: the figure \"T\" cannot be read: its kind has no \"experiments\": leave it out"
        );
    }

    #[test]
    fn figures_of_a_level_stand_together() {
        let figure = |level: &str| {
            format!(
                "[[figure]]\nkind = \"table\"\ntitle = {level:?}\nlevel = {level:?}\nexperiments = [\"lat\"]\n\
                 x = \"size_bytes\"\ny = \"latency.p50_ns\"\n"
            )
        };
        let row = "[[figure.row]]\nwhat = \"W\"\nexperiments = [\"lat\"]\nwhere = { size_bytes = 4 }\n\
                   modes = [\"service\"]\ny = \"latency.p50_ns\"\n";
        let together = [figure("A"), figure("A"), figure("B")].concat();
        assert!(resolved(&(row.to_owned() + &together)).is_ok());
        let apart = [figure("A"), figure("B"), figure("A")].concat();
        assert_eq!(
            resolved(&(row.to_owned() + &apart)).unwrap_err().to_string(),
            "x.toml:30: the figure \"A\" is separated from the other figures of the level \"A\": put the figures of a \
             level together"
        );
    }
}
