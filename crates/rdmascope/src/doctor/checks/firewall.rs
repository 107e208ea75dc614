//! Packet filters, as far as this user may read them. They concern software devices only: the
//! packets of an adapter bypass the kernel.

use verbs::DeviceKind;

use crate::devices::Port;
use crate::doctor::facts::{Facts, Firewall};
use crate::doctor::finding::{Finding, Severity};

/// The UDP port of RoCE v2 (IBTA annex A17).
const ROCE_PORT: &str = "4791";

/// Reports rules that drop the RoCE v2 packets of rxe.
pub(in crate::doctor) fn firewall(facts: &Facts) -> Vec<Finding> {
    let is_roce = |port: &Port| port.protocol.as_deref() == Some("RoCE");
    let is_filtered = facts
        .devices()
        .any(|device| device.kind == DeviceKind::KernelSoftware && device.ports.iter().any(is_roce));
    if !is_filtered {
        return Vec::new();
    }
    let looked_at = "the rules of nft or iptables";
    let rules = match &facts.firewall {
        Firewall::Unknown(why) => {
            let finding = Finding::good("firewall", looked_at, format!("unknown: {why}"));
            let why =
                "if a rule drops UDP port 4791, RoCE v2 from other hosts ends in \"retry counter exceeded\"";
            return vec![finding.but(Severity::Note, why)];
        }
        Firewall::Rules(rules) => rules,
    };
    let found = |text: &str| Finding::good("firewall", looked_at, text.to_owned());
    if let Some(rule) = rules.lines().find(|rule| names_roce(rule) && is_verdict(rule, &["drop", "reject"])) {
        let why = "packets of RoCE v2 from other hosts are dropped: sends end in \"retry counter exceeded\" (status 12)";
        return vec![
            found(&format!("a rule drops UDP port 4791: {}", rule.trim())).but(Severity::Warning, why),
        ];
    }
    let is_allowed = rules.lines().any(|rule| names_roce(rule) && is_verdict(rule, &["accept"]));
    if drops_by_default(rules) && !is_allowed {
        let remedy = if rules.contains("hook input") {
            facts.as_root(
                "nft insert rule inet filter input udp dport 4791 accept   # name your table and chain",
            )
        } else {
            facts.as_root("iptables -I INPUT -p udp --dport 4791 -j ACCEPT")
        };
        let why = "packets of RoCE v2 from other hosts are dropped, unless another rule accepts them";
        let finding = found("incoming packets are dropped by default, and no rule names UDP port 4791");
        return vec![finding.but(Severity::Warning, why).mended_by(remedy)];
    }
    vec![found("no rule drops UDP port 4791")]
}

fn names_roce(rule: &str) -> bool {
    rule.contains("dport") && rule.split(|c: char| !c.is_ascii_digit()).any(|number| number == ROCE_PORT)
}

fn is_verdict(rule: &str, verdicts: &[&str]) -> bool {
    rule.split_whitespace().any(|word| verdicts.contains(&&*word.to_ascii_lowercase()))
}

/// Whether incoming packets are dropped by default: `type filter hook input priority filter; policy
/// drop;` of nft or `:INPUT DROP [0:0]` of iptables-save.
fn drops_by_default(rules: &str) -> bool {
    rules.lines().any(|line| {
        (line.contains("hook input") && line.contains("policy drop")) || line.starts_with(":INPUT DROP")
    })
}
