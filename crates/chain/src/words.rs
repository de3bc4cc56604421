//! Words of messages.

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn any_of<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::any_of;

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(any_of::<&str>(&[]), "");
        assert_eq!(any_of(&["a"]), "a");
        assert_eq!(any_of(&["a", "b"]), "a or b");
        assert_eq!(any_of(&["a", "b", "c"]), "a, b or c");
    }
}
