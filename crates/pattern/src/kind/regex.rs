//! Regular expressions, searched in what follows the head; `^` and `$` are that part's ends.
//!
//! The `regex` crate decides exactly. For the filter the expression is expanded into shapes, within bounds: where
//! there would be too many, alternatives are merged into one that allows at least as much.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;

use super::{Kind, Pattern, alternatives};
use crate::Reason;
use crate::automaton::chance;
use crate::base58;
use crate::expr::{Expr, Look};
use crate::lower;
use crate::shape::{Item, Placement, Shape, enclose, lengths};
use crate::text::{Code, Text};

pub(super) const KIND: Kind = Kind {
    name: "regex",
    written: &[("/^{start}.*{end}$/", "a regular expression; ^ and $ are the ends of what patterns see")],
    claims: |body| body.starts_with('/'),
    read: |body, text| Ok(Box::new(Expression::read(body, text)?)),
};

/// Bytes of a written expression, bytes of a compiled one, and depth of nesting; all far above what a person writes.
const MOST_WRITTEN: usize = 4096;
const MOST_COMPILED: usize = 4 << 20;
const MOST_NESTED: u32 = 100;

struct Expression {
    regex: Regex,
    impossible: Vec<String>,
    shapes: Vec<Shape>,
    odds: f64,
}

impl Expression {
    fn read(body: &str, text: &Text) -> Result<Self, Reason> {
        let inner = body.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).ok_or(Reason::Unclosed)?;
        if inner.is_empty() {
            return Err(Reason::EveryKey);
        }
        if inner.len() > MOST_WRITTEN {
            return Err(Reason::Regex(format!("it has {} bytes, more than {MOST_WRITTEN}", inner.len())));
        }
        let regex = RegexBuilder::new(inner)
            .case_insensitive(text.ignore_case)
            .size_limit(MOST_COMPILED)
            .dfa_size_limit(MOST_COMPILED)
            .nest_limit(MOST_NESTED)
            .build()
            .map_err(|error| Reason::Regex(error.to_string()))?;
        let read = |inner: &str| -> Result<Expr, Reason> {
            let mut builder = ParserBuilder::new();
            let mut parser = builder.case_insensitive(text.ignore_case).nest_limit(MOST_NESTED).build();
            parser
                .parse(inner)
                .map(|hir| Expr::new(&hir, text))
                .map_err(|error| Reason::Regex(error.to_string()))
        };
        let expr = read(inner)?;
        let shapes = shapes(&expr, text);
        let chance = chance(&expr, text);
        let is_possible = shapes.iter().any(|shape| is_possible(shape, shapes.len(), text));
        if chance.is_some_and(|chance| chance.hit == 0.0) || !is_possible {
            return Err(Reason::RegexNever {
                target: text.target,
                head: text.head,
                alphabet: text.alphabet,
                length: text.len(),
            });
        }
        let odds = match chance {
            Some(chance) if chance.miss == 0.0 && !text.is_restricted() => return Err(Reason::EveryKey),
            Some(chance) => chance.hit,
            // An upper bound, since the shapes allow at least what the expression matches.
            None => lower::union(shapes.iter().flat_map(|shape| odds(shape, shapes.len(), text))),
        };
        let impossible = alternatives::impossible(inner, |only| read(only).is_ok_and(|expr| expr.is_never()));
        Ok(Self { regex, impossible, shapes, odds })
    }
}

impl Pattern for Expression {
    fn matches(&self, body: &str, _: &Text) -> bool {
        self.regex.is_match(body)
    }

    fn odds(&self) -> f64 {
        self.odds
    }

    fn shapes(&self, _: &Text) -> Vec<Shape> {
        self.shapes.clone()
    }

    fn impossible(&self) -> &[String] {
        &self.impossible
    }
}

/// One alternative of an expression, before it is known where in the text it stands.
type Sequence = Vec<Piece>;

#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Item(Item),
    Start,
    End,
}

/// The shapes of texts in which the expression matches somewhere; at least those. Very many alternatives leave few
/// placements for each, so merging some earlier may be sharper: of several ways the sharpest is taken.
fn shapes(expr: &Expr, text: &Text) -> Vec<Shape> {
    let all = expanded(expr, text, 1024);
    if all.len() <= 32 {
        return all;
    }
    let passed = |shapes: &[Shape]| -> f64 {
        let limit = (lower::MOST_TERMS / shapes.len().max(1)).max(1);
        let passed = |shape: &Shape| match text.code {
            Code::Linear(_) => shape.clone().sharpest(text, limit, 0.0).0,
            Code::Base58(code) => base58::share(code, &shape.leading()).unwrap_or(0.0),
        };
        shapes.iter().map(passed).sum()
    };
    let ways = [all, expanded(expr, text, 32), expanded(expr, text, 1)];
    ways.into_iter().min_by(|a, b| passed(a).total_cmp(&passed(b))).unwrap_or_default()
}

/// The shapes with at most so many alternatives in any part of the expression.
fn expanded(expr: &Expr, text: &Text, most_alternatives: usize) -> Vec<Shape> {
    let mut expansion = Expansion { text, most_alternatives, work: Expansion::MOST_WORK };
    let mut shapes: Vec<Shape> = Vec::new();
    for sequence in expansion.expand(expr) {
        shapes.extend(anchor(&sequence, text).filter(|shape| !shapes.contains(shape)));
    }
    shapes
}

/// The placements of one of `count` shapes, which together are no more than a filter may have terms.
fn places(shape: &Shape, count: usize, text: &Text) -> Vec<Placement> {
    shape.clone().placements(text, (lower::MOST_TERMS / count.max(1)).max(1))
}

/// Whether a text can have the shape, as far as the ends and the bits tell.
fn is_possible(shape: &Shape, count: usize, text: &Text) -> bool {
    match text.code {
        Code::Linear(_) => places(shape, count, text).iter().any(|place| lower::system(place, text).is_ok()),
        Code::Base58(code) => base58::share(code, &shape.leading()).is_ok(),
    }
}

/// The chances of the ways to have the shape.
fn odds(shape: &Shape, count: usize, text: &Text) -> Vec<f64> {
    match text.code {
        Code::Linear(_) => {
            places(shape, count, text).iter().filter_map(|place| lower::odds(place, text)).collect()
        }
        Code::Base58(code) => base58::share(code, &shape.leading()).into_iter().collect(),
    }
}

/// The shape of a sequence found somewhere; `None` when `^` or `$` stand where they cannot hold.
fn anchor(sequence: &[Piece], text: &Text) -> Option<Shape> {
    let start = sequence.iter().rposition(|piece| *piece == Piece::Start);
    let end = sequence.iter().position(|piece| *piece == Piece::End);
    let (from, to) = (start.map_or(0, |i| i + 1), end.unwrap_or(sequence.len()));
    // What stands before the start or after the end must be empty.
    let outside = sequence[..from].iter().chain(&sequence[to.max(from)..]);
    if to < from || items(outside).any(|item| lengths(&[item]).0 > 0) {
        return None;
    }
    let free = |is_fixed: bool| (!is_fixed).then(|| Shape::free(text));
    let inside = items(&sequence[from..to]);
    let mut shape = Shape { items: Vec::new() };
    for item in free(start.is_some()).into_iter().chain(inside).chain(free(end.is_some())) {
        push(&mut shape.items, item, text);
    }
    Some(shape)
}

fn items<'s>(pieces: impl IntoIterator<Item = &'s Piece>) -> impl Iterator<Item = Item> {
    pieces.into_iter().filter_map(|piece| match piece {
        Piece::Item(item) => Some(*item),
        _ => None,
    })
}

/// Appends an item: a gap of fixed length as single symbols, a gap after an equal one as its extension.
fn push(to: &mut Vec<Item>, item: Item, text: &Text) {
    let Item::Gap { set, min, max } = item else { return to.push(item) };
    let max = max.min(text.len());
    if let Some(Item::Gap { set: before, min: least, max: most }) = to.last_mut()
        && *before == set
    {
        (*least, *most) = (*least + min, (*most + max).min(text.len()));
        return;
    }
    if min == max {
        to.extend(std::iter::repeat_n(Item::One(set), min))
    } else {
        to.push(Item::Gap { set, min, max })
    }
}

/// Expands an expression into alternatives. Everything it returns allows at least what the expression does.
struct Expansion<'t> {
    text: &'t Text,
    most_alternatives: usize,
    /// Pieces that may still be written before everything is merged.
    work: usize,
}

impl Expansion<'_> {
    const MOST_WORK: usize = 4_000_000;
    const MOST_PIECES: usize = 128;

    fn expand(&mut self, expr: &Expr) -> Vec<Sequence> {
        match expr {
            Expr::One(0) => Vec::new(),
            Expr::One(set) => vec![vec![Piece::Item(Item::One(*set))]],
            Expr::Look(Look::Start) => vec![vec![Piece::Start]],
            Expr::Look(Look::End) => vec![vec![Piece::End]],
            Expr::Look(Look::Edge) => vec![vec![Piece::Start], vec![Piece::End]],
            // Not being at the edges is a condition too weak to be worth a shape.
            Expr::Look(Look::Inner) => vec![Vec::new()],
            Expr::Concat(parts) => {
                let mut all = vec![Vec::new()];
                for part in parts {
                    let next = self.expand(part);
                    all = self.product(all, next);
                    if all.is_empty() {
                        break;
                    }
                }
                all
            }
            Expr::Either(parts) => {
                let all: Vec<Sequence> = parts.iter().flat_map(|part| self.expand(part)).collect();
                if all.len() > self.most_alternatives { vec![self.merge(&all)] } else { all }
            }
            Expr::Repeat { sub, min, max } => {
                let sub = self.expand(sub);
                self.repeat(sub, *min, *max)
            }
        }
    }

    fn repeat(&mut self, mut sub: Vec<Sequence>, min: usize, max: Option<usize>) -> Vec<Sequence> {
        let (min, max) = Expr::rounds(min, max, self.text.len());
        if sub.is_empty() {
            return if min == 0 { vec![Vec::new()] } else { Vec::new() };
        }
        if (min, max) == (0, Some(1)) {
            sub.push(Vec::new());
            return sub;
        }
        if let [sequence] = &sub[..]
            && let [Piece::Item(Item::One(set))] = sequence[..]
        {
            let max = max.unwrap_or(self.text.len()).max(min);
            let mut items = Vec::new();
            push(&mut items, Item::Gap { set, min, max }, self.text);
            // More symbols than the text has: `push` has cut the maximum, the minimum tells.
            return if min > self.text.len() {
                Vec::new()
            } else {
                vec![items.into_iter().map(Piece::Item).collect()]
            };
        }
        let mut all = vec![Vec::new()];
        for _ in 0..min {
            all = self.product(all, sub.clone());
        }
        if max != Some(min) {
            let more = enclose(&items(sub.iter().flatten()).collect::<Vec<_>>());
            if let Item::Gap { set, .. } = more {
                let longest =
                    sub.iter().map(|sequence| lengths(&items(sequence).collect::<Vec<_>>()).1).max();
                let rounds = max.map_or(self.text.len(), |max| max - min);
                let max = longest.unwrap_or(0).saturating_mul(rounds).min(self.text.len());
                if max > 0 {
                    all = self.product(all, vec![vec![Piece::Item(Item::Gap { set, min: 0, max })]]);
                }
            }
        }
        all
    }

    /// Every sequence of the one followed by every sequence of the other, less those too long for the text.
    fn product(&mut self, first: Vec<Sequence>, mut second: Vec<Sequence>) -> Vec<Sequence> {
        if first.len() * second.len() > self.most_alternatives || self.work == 0 {
            second = vec![self.merge(&second)];
        }
        let mut all = Vec::with_capacity(first.len() * second.len());
        for start in &first {
            for end in &second {
                self.work = self.work.saturating_sub(start.len() + end.len());
                let mut sequence = start.clone();
                sequence.extend_from_slice(end);
                if lengths(&items(&sequence).collect::<Vec<_>>()).0 > self.text.len() {
                    continue;
                }
                if sequence.len() > Self::MOST_PIECES {
                    sequence = self.merge(std::slice::from_ref(&sequence));
                }
                all.push(sequence);
            }
        }
        if self.work == 0 && all.len() > 1 { vec![self.merge(&all)] } else { all }
    }

    /// One sequence that allows everything these do: symbol by symbol where they are equally long and nothing else,
    /// else a gap. `^` and `$` are let go.
    fn merge(&self, all: &[Sequence]) -> Sequence {
        let symbols = |sequence: &Sequence| -> Option<Vec<u64>> {
            let symbol = |piece: &Piece| match piece {
                Piece::Item(Item::One(set)) => Some(*set),
                _ => None,
            };
            sequence.iter().map(symbol).collect()
        };
        let mut merged = all.first().and_then(symbols);
        for sequence in all.iter().skip(1) {
            merged = merged.zip(symbols(sequence)).filter(|(a, b)| a.len() == b.len()).map(|(mut a, b)| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
                a
            });
        }
        if let Some(sets) = merged
            && sets.len() <= Self::MOST_PIECES
        {
            return sets.into_iter().map(|set| Piece::Item(Item::One(set))).collect();
        }
        let each: Vec<Item> =
            all.iter().map(|sequence| enclose(&items(sequence).collect::<Vec<_>>())).collect();
        let bounds = |item: &Item| lengths(std::slice::from_ref(item));
        let min = each.iter().map(|item| bounds(item).0).min().unwrap_or(0);
        let max = each.iter().map(|item| bounds(item).1).max().unwrap_or(0).min(self.text.len());
        let Item::Gap { set, .. } = enclose(&each) else { unreachable!("enclosing gives a gap") };
        vec![Piece::Item(Item::Gap { set, min, max: max.max(min) })]
    }
}
