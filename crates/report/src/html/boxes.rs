//! The elements in which the page's script draws the charts of a figure.

use maud::{Markup, html};

use super::chart::Chart;
use super::table::waiting;

/// The charts of a figure, each below its label; several stand beside each other.
pub(super) fn plots(charts: &[Chart], title: &str) -> Markup {
    html! {
        @match charts {
            [chart] if chart.label.is_empty() => (plot(chart, title)),
            _ => div class="panels" {
                @for chart in charts {
                    div class="panel" {
                        h3 { (chart.label) }
                        (plot(chart, &format!("{title}: {}", chart.label)))
                    }
                }
            },
        }
    }
}

fn plot(chart: &Chart, what: &str) -> Markup {
    html! {
        div class="plot" id=(chart.id) role="figure" aria-label={ (what) "; the numbers are in the table below" } {
            (waiting())
        }
    }
}
