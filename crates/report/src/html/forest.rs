//! The forest plot of a finding: the measured number with its interval beside the range of the
//! claim and the published size; and that of several ratios on one scale.

use maud::{Markup, html};
use measure::finding::Finding;
use measure::stats::shape::Estimate;

/// The drawing's width and height, in the units of its own coordinates.
pub(crate) const WIDTH: f64 = 200.0;
pub(crate) const HEIGHT: f64 = 16.0;
/// How much of the scale lies on each side of what has to be seen.
const MARGIN: f64 = 0.15;
/// A number this many times as far away as the ranges are wide is drawn as an arrow at the edge:
/// it would squeeze everything else into a line.
const FAR: f64 = 4.0;

/// The scale: the number at the left edge, and at the right one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    left: f64,
    right: f64,
}

impl Scale {
    /// The scale of a finding: it shows all finite bounds and, unless it is far away, the interval.
    fn of(finding: &Finding, figure: Estimate) -> Option<Self> {
        let bounds = finding.matches.iter().chain([&finding.holds]).flat_map(|range| range.bounds());
        // No change at all is where effects are read from.
        let fixed: Vec<f64> = bounds.filter(|bound| bound.is_finite()).chain([neutral(finding)]).collect();
        let least = fixed.iter().copied().reduce(f64::min)?;
        let most = fixed.iter().copied().reduce(f64::max)?;
        let wide = (most - least).max(most.abs() * 0.1).max(f64::MIN_POSITIVE);
        let within = |number: f64| number.clamp(least - FAR * wide, most + FAR * wide);
        let left = least.min(within(figure.low));
        let right = most.max(within(figure.high));
        let margin = (right - left).max(wide) * MARGIN;
        Some(Self { left: left - margin, right: right + margin })
    }

    /// Where a number stands in the drawing, at an edge if it is outside.
    fn x(self, number: f64) -> f64 {
        let share = (number - self.left) / (self.right - self.left);
        (share.clamp(0.0, 1.0) * WIDTH * 10.0).round() / 10.0
    }
}

/// The number that stands for no effect.
fn neutral(finding: &Finding) -> f64 {
    use measure::finding::{FindingKind, RangeUnit};
    match (finding.holds.unit, finding.kind) {
        // A ratio of two numbers.
        (
            RangeUnit::Plain,
            FindingKind::Change | FindingKind::Flat | FindingKind::Agree | FindingKind::Step,
        ) => 1.0,
        _ => 0.0,
    }
}

/// The drawing; empty where there is no scale for it.
pub(crate) fn plot(finding: &Finding, figure: Estimate) -> Markup {
    let Some(scale) = Scale::of(finding, figure) else { return html! {} };
    let matches = finding.matches.as_ref().map(measure::finding::Range::bounds);
    drawing(scale, finding.holds.bounds(), matches, neutral(finding), figure)
}

/// The drawings of ratios with their intervals on one logarithmic scale, in the order of the
/// ratios, beside the band of ratios that count as the same.
pub(crate) fn ratios(figures: &[Estimate], same: [f64; 2]) -> Vec<Markup> {
    let ln = |figure: &Estimate| {
        let Estimate { value, low, high } = *figure;
        Estimate { value: value.ln(), low: low.ln(), high: high.ln() }
    };
    let figures: Vec<Estimate> = figures.iter().map(ln).collect();
    let band = same.map(f64::ln);
    let far = FAR * (band[1] - band[0]);
    let least = figures.iter().map(|figure| figure.low).fold(band[0], f64::min).max(band[0] - far);
    let most = figures.iter().map(|figure| figure.high).fold(band[1], f64::max).min(band[1] + far);
    let margin = (most - least) * MARGIN;
    let scale = Scale { left: least - margin, right: most + margin };
    figures.into_iter().map(|figure| drawing(scale, band, None, 0.0, figure)).collect()
}

fn drawing(
    scale: Scale,
    holds: [f64; 2],
    matches: Option<[f64; 2]>,
    neutral: f64,
    figure: Estimate,
) -> Markup {
    let band = |[low, high]: [f64; 2]| {
        let from = scale.x(low);
        (from, (scale.x(high) - from).max(1.0))
    };
    let (holds_x, holds_width) = band(holds);
    let value = scale.x(figure.value);
    let middle = HEIGHT / 2.0;
    let is_beyond = figure.value < scale.left || figure.value > scale.right;
    html! {
        svg class="forest" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } aria-hidden="true" {
            rect class="holds" x=(holds_x) y="0" width=(holds_width) height=(HEIGHT) { }
            @if let Some(matches) = matches {
                @let (x, width) = band(matches);
                rect class="matches" x=(x) y="0" width=(width) height=(HEIGHT) { }
            }
            line class="neutral" x1=(scale.x(neutral)) x2=(scale.x(neutral)) y1="0" y2=(HEIGHT) { }
            line class="interval" x1=(scale.x(figure.low)) x2=(scale.x(figure.high)) y1=(middle) y2=(middle) { }
            @if is_beyond {
                path class="value" d=(arrow(figure.value > scale.right)) { }
            } @else {
                circle class="value" cx=(value) cy=(middle) r="3.5" { }
            }
        }
    }
}

/// An arrow at an edge: the number lies beyond it.
fn arrow(is_right: bool) -> String {
    let (tip, back) = if is_right { (WIDTH, WIDTH - 8.0) } else { (0.0, 8.0) };
    format!("M{back} 3 L{tip} 8 L{back} 13 Z")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(holds: &str, matches: Option<&str>) -> Finding {
        serde_json::from_value(json!({
            "kind": "change", "claim": "C", "experiments": ["e"], "holds": holds, "matches": matches,
        }))
        .unwrap()
    }

    fn estimate(low: f64, value: f64, high: f64) -> Estimate {
        Estimate { value, low, high }
    }

    #[test]
    fn the_interval_stands_where_its_numbers_are() {
        let finding = finding("> 0 %", Some("10 % .. 30 %"));
        let page = plot(&finding, estimate(15.0, 20.0, 25.0)).into_string();
        // From -4.5 % to 34.5 %: a margin of 15 % on both sides of 0 to 30.
        assert!(page.contains("<circle class=\"value\" cx=\"125.6\""), "{page}");
        assert!(page.contains("<line class=\"interval\" x1=\"100\" x2=\"151.3\""), "{page}");
        assert!(page.contains("<rect class=\"holds\" x=\"23.1\" y=\"0\" width=\"176.9\""), "{page}");
        assert!(page.contains("<rect class=\"matches\" x=\"74.4\" y=\"0\" width=\"102.5\""), "{page}");
    }

    #[test]
    fn a_number_far_away_is_an_arrow() {
        let finding = finding("> 0 %", Some("10 % .. 30 %"));
        let page = plot(&finding, estimate(1439.0, 3_213_358.0, 12_423_314.0)).into_string();
        assert!(
            page.contains("<path class=\"value\" d=\"M192 3 L200 8 L192 13 Z\"") && !page.contains("<circle"),
            "{page}"
        );
    }
}
