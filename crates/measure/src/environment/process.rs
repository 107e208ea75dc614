//! What `/proc` says of a process.

/// Returns a field of the contents of `/proc/PID/stat` by its number in proc_pid_stat(5), from the
/// third on. The second field, the name of the process, may contain blanks and parentheses.
pub fn stat_field(stat: &str, number: usize) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(number.checked_sub(3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_any_name() {
        let stat = "7 (a ) b) R 1 2\n";
        assert_eq!(
            [3, 4, 5, 6].map(|number| stat_field(stat, number)),
            [Some("R"), Some("1"), Some("2"), None]
        );
        assert_eq!((stat_field(stat, 2), stat_field("", 3)), (None, None));
    }
}
