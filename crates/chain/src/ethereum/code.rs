//! Files with creation code, as the shell lines that create a contract read them.

/// The file with the creation code, as a shell reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSource {
    form: CodeForm,
    /// Quoted for a shell.
    file: String,
    /// Whether the digits have `0x` before them.
    is_prefixed: bool,
}

/// Format of a file with creation code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeForm {
    /// As hex digits, and nothing before them but `0x`.
    Hex,
    /// As bytes.
    Bytes,
    /// As hex digits in a JSON artifact of Foundry.
    Foundry,
    /// As hex digits in a JSON artifact of Hardhat or Truffle.
    Hardhat,
}

impl CodeForm {
    const ALL: [CodeForm; 4] = [CodeForm::Hex, CodeForm::Bytes, CodeForm::Foundry, CodeForm::Hardhat];

    /// The command that prints the digits of a file, before and after its name.
    fn command(self) -> [&'static str; 2] {
        match self {
            CodeForm::Hex => ["cat ", ""],
            CodeForm::Bytes => ["od -An -v -tx1 ", " | tr -d ' \\n'"],
            CodeForm::Foundry => ["jq -r .bytecode.object ", ""],
            CodeForm::Hardhat => ["jq -r .bytecode ", ""],
        }
    }
}

impl CodeSource {
    /// A file of this form, whose digits have `0x` before them or not. `None` if no line of text can have its name.
    pub fn new(form: CodeForm, file: &str, is_prefixed: bool) -> Option<CodeSource> {
        if file.is_empty() || file.chars().any(char::is_control) {
            return None;
        }
        Some(CodeSource { form, file: quoted(file), is_prefixed })
    }

    /// Any file of hex digits: the reader of the line puts its name in.
    pub(super) fn unknown() -> CodeSource {
        CodeSource { form: CodeForm::Hex, file: "FILE".to_owned(), is_prefixed: true }
    }

    /// The digits after `0x`, as an argument.
    pub(super) fn prefixed(&self) -> String {
        let [before, after] = self.form.command();
        let head = if self.is_prefixed { "" } else { "0x" };
        format!("{head}$({before}{}{after})", self.file)
    }

    /// The digits alone.
    pub(super) fn bare(&self) -> String {
        let [before, after] = self.form.command();
        let cut = if self.is_prefixed { " | sed s/^0x//" } else { "" };
        format!("$({before}{}{after}{cut})", self.file)
    }

    /// Returns the source from which `write` makes this line.
    pub(super) fn find(line: &str, write: impl Fn(&CodeSource) -> String) -> Option<CodeSource> {
        const MARK: &str = "\0";
        let all = CodeForm::ALL.into_iter().flat_map(|form| [(form, true), (form, false)]);
        let mut sources = all.filter_map(|(form, is_prefixed)| {
            let written = write(&CodeSource { form, file: MARK.to_owned(), is_prefixed });
            let (before, after) = written.split_once(MARK)?;
            let file = line.strip_prefix(before)?.strip_suffix(after)?;
            // A line may come from anywhere: what is no name of a file could be any command.
            let source = CodeSource::new(form, &unquoted(file), is_prefixed)?;
            (source.file == file).then_some(source)
        });
        sources.next()
    }
}

/// A file's name as one word of a shell.
fn quoted(file: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./+,@%=:-".contains(c);
    match file {
        // It would be taken for a flag.
        _ if file.starts_with('-') => quoted(&format!("./{file}")),
        _ if file.chars().all(is_plain) => file.to_owned(),
        _ => format!("'{}'", file.replace('\'', "'\\''")),
    }
}

/// The name that a word of a shell stands for, if it is one.
fn unquoted(word: &str) -> String {
    let inner = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
    inner.map_or(word.to_owned(), |inner| inner.replace("'\\''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_words_and_nothing_else_is_a_name() {
        for (file, word) in [
            ("out/Token.sol/Token.json", "out/Token.sol/Token.json"),
            ("my code.hex", "'my code.hex'"),
            ("it's", "'it'\\''s'"),
            ("-rf", "./-rf"),
            ("$(id)", "'$(id)'"),
        ] {
            let source = CodeSource::new(CodeForm::Hex, file, true).unwrap();
            assert_eq!(source.prefixed(), format!("$(cat {word})"));
            let write = |source: &CodeSource| format!("cast send {} --rpc-url URL", source.prefixed());
            assert_eq!(CodeSource::find(&write(&source), write), Some(source));
        }
        assert_eq!(CodeSource::new(CodeForm::Hex, "a\nb", true), None);
        for word in ["", "a; rm b", "$(id)", "a b", "'a'; 'b'", "-rf", "'plain'"] {
            let write = |source: &CodeSource| source.prefixed();
            assert_eq!(CodeSource::find(&format!("$(cat {word})"), write), None, "{word}");
        }
    }

    #[test]
    fn digits_have_their_prefix_once() {
        let sources = [(CodeForm::Foundry, true), (CodeForm::Hardhat, false), (CodeForm::Bytes, false)];
        let [foundry, hardhat, bytes] =
            sources.map(|(form, is_prefixed)| CodeSource::new(form, "f", is_prefixed).unwrap());
        assert_eq!(foundry.prefixed(), "$(jq -r .bytecode.object f)");
        assert_eq!(foundry.bare(), "$(jq -r .bytecode.object f | sed s/^0x//)");
        assert_eq!(hardhat.prefixed(), "0x$(jq -r .bytecode f)");
        assert_eq!(hardhat.bare(), "$(jq -r .bytecode f)");
        assert_eq!(bytes.prefixed(), "0x$(od -An -v -tx1 f | tr -d ' \\n')");
    }
}
