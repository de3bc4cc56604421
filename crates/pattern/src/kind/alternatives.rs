//! Alternatives of a regular expression that can never match, as `bob` in `/^(cafe|bob)/`: the others are found, so that the expression
//! is possible, and whoever wrote it should know that this one is not.
//!
//! Each alternative is tried by itself in place of all of them. Expressions with flags in them are left alone: taking out the
//! alternative that sets a flag would change the others.

use std::ops::Range;

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, GroupKind, Span};

/// The alternatives of an expression that make it impossible where they stand alone, as they are written. `is_never` tells whether
/// an expression cannot match.
pub(super) fn impossible(inner: &str, is_never: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(ast) = Parser::new().parse(inner) else { return Vec::new() };
    if has_flags(&ast) {
        return Vec::new();
    }
    let mut search = Search { inner, is_never, found: Vec::new() };
    search.visit(&ast, 0..inner.len(), "", "");
    search.found
}

fn has_flags(ast: &Ast) -> bool {
    match ast {
        Ast::Flags(_) => true,
        Ast::Group(group) => {
            let has_own = matches!(&group.kind, GroupKind::NonCapturing(flags) if !flags.items.is_empty());
            has_own || has_flags(&group.ast)
        }
        Ast::Repetition(repetition) => has_flags(&repetition.ast),
        Ast::Alternation(alternation) => alternation.asts.iter().any(has_flags),
        Ast::Concat(concat) => concat.asts.iter().any(has_flags),
        _ => false,
    }
}

struct Search<'i, F> {
    inner: &'i str,
    is_never: F,
    found: Vec<String>,
}

impl<F: Fn(&str) -> bool> Search<'_, F> {
    /// Looks at the alternatives in a part of the expression. The `region` of the text that it lies in stands between `before` and
    /// `after`.
    fn visit(&mut self, ast: &Ast, region: Range<usize>, before: &str, after: &str) {
        match ast {
            Ast::Alternation(alternation) => {
                let all = range(&alternation.span);
                let before = format!("{before}{}(?:", &self.inner[region.start..all.start]);
                let after = format!("){}{after}", &self.inner[all.end..region.end]);
                for branch in &alternation.asts {
                    let own = range(branch.span());
                    let written = &self.inner[own.clone()];
                    match (self.is_never)(&format!("{before}{written}{after}")) {
                        true => self.found.push(written.to_owned()),
                        false => self.visit(branch, own, &before, &after),
                    }
                }
            }
            Ast::Group(group) => self.visit(&group.ast, region, before, after),
            Ast::Repetition(repetition) => self.visit(&repetition.ast, region, before, after),
            Ast::Concat(concat) => {
                concat.asts.iter().for_each(|part| self.visit(part, region.clone(), before, after));
            }
            _ => {}
        }
    }
}

fn range(span: &Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

#[cfg(test)]
mod tests {
    use crate::{Options, compile};

    #[test]
    fn alternatives_without_a_text_are_named() {
        let dropped = |pattern: &str, target: &str| {
            let target = warpsmith_chain::find(target).unwrap();
            let patterns = compile([pattern], target, &Options::default()).unwrap();
            let parts: Vec<String> = patterns.impossible_parts().map(|(_, part)| part.to_owned()).collect();
            parts.join(" ")
        };
        for (pattern, expected) in [
            ("/^(cafe|bob)/", "bob"),
            ("/^cafe|bob$/", "bob$"),
            ("/^(cafe|face|ace)/", ""),
            ("/^(cafe|fa(ce|bob|io))x/", "bob io"),
            ("/^(?:b.*|[bio]z|q.*)$/", "b.* [bio]z"),
            ("/^(cafe|bob)(ace|lib)/", "bob lib"),
            ("/^(cafe|b?z)/", ""),
            ("/^(?i:CAFE|BOB)/", ""),
            ("cafe", ""),
        ] {
            assert_eq!(dropped(pattern, "npub"), expected, "{pattern}");
        }
        assert_eq!(dropped("/^(cafe|BABE|gold)/", "eth"), "gold", "case does not matter there");
    }
}
