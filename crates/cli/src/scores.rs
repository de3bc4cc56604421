//! Scores on the command line: what is counted, and which results are shown.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use warpsmith::pattern::{Feature, MOST_PARTS, Options, Part, Ranking, SCORES, Score};
use warpsmith::search::Show;
use warpsmith_console::exit::Failure;
use warpsmith_console::human::whole;
use warpsmith_console::input;
use warpsmith_text::toml_mistake;

use crate::running::{PATTERNS, SCORES as HEADING};

/// A search for the best instead of a match, or for the best among matches, for every command whose addresses have scores.
#[derive(Args)]
pub(crate) struct ScoreFlags {
    /// Search for the most zero bytes at the start, until stopped; prints each result better than all before
    #[arg(long, conflicts_with_all = ["zeros", "leading", "best", "score_file"], help_heading = HEADING)]
    leading_zeros: bool,

    /// Search for the most zero bytes anywhere
    #[arg(long, conflicts_with_all = ["leading", "best", "score_file"], help_heading = HEADING)]
    zeros: bool,

    /// Search for the longest run of this hex digit at the start
    #[arg(long, value_name = "HEXDIGIT", value_parser = parse_digit, conflicts_with_all = ["best", "score_file"],
        help_heading = HEADING)]
    leading: Option<Feature>,

    /// Search for the most of this, or of a sum as 10*leading-zeros+count:4; beside patterns, among what matches
    #[arg(long, value_name = "SCORE", value_parser = Score::parse, long_help = long_help(), conflicts_with = "score_file",
        help_heading = HEADING)]
    best: Option<Score>,

    /// Search for the most of a sum that FILE gives: a TOML table `weights` with lines as leading-zeros = 10
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = HEADING)]
    score_file: Option<PathBuf>,

    /// Stop as soon as this score is reached
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..), help_heading = HEADING)]
    score: Option<u32>,

    /// Print everything that scores N or more, not only what is better than all before
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..),
        conflicts_with_all = ["score", "ties"], help_heading = HEADING)]
    min_score: Option<u32>,

    /// Print what is as good as the best before it, too
    #[arg(long, help_heading = HEADING)]
    ties: bool,

    /// Match upper and lower case as EIP-55 writes them; without it case does not matter
    #[arg(long, help_heading = PATTERNS)]
    checksum: bool,
}

/// What a search for the best goes by.
#[derive(Clone)]
pub(crate) struct Contest {
    pub score: Score,
    pub show: Show,
    pub enough: Option<u32>,
}

impl Contest {
    /// Whether an address can reach what was asked for among those that match.
    pub fn check(&self, ranking: &Ranking) -> Result<(), Failure> {
        let asked = match self.show {
            Show::AtLeast(least) => Some(("--min-score", least)),
            _ => self.enough.map(|enough| ("--score", enough)),
        };
        match asked.filter(|(_, asked)| ranking.odds(*asked) == 0.0) {
            Some((flag, asked)) => Err(Failure::Usage(format!(
                "{flag} {asked} cannot be reached: the most an address can score that fits the pattern is {}",
                ranking.max()
            ))),
            None => Ok(()),
        }
    }
}

fn long_help() -> String {
    let width = SCORES.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    let rows =
        SCORES.iter().map(|kind| format!("\n  {:width$}  {}", kind.name, kind.counts.replace('`', "")));
    format!(
        "Search for the most of this; beside patterns, among what matches. Sums are written as 10*leading-zeros+count:4.{}",
        rows.collect::<String>()
    )
}

fn parse_digit(text: &str) -> Result<Feature, String> {
    Feature::parse(&format!("leading:{text}")).map_err(|_| "give one hex digit, 0 to 9 or a to f".to_owned())
}

impl ScoreFlags {
    /// What is scored, and what of it is shown.
    pub fn read(&self) -> Result<Option<Contest>, Failure> {
        let file = self.score_file.as_deref().map(read_file).transpose()?;
        let feature = self.leading_zeros.then_some(Feature::LeadingZeros);
        let feature = feature.or(self.zeros.then_some(Feature::Zeros)).or(self.leading);
        let score = feature.map(Score::from).or_else(|| self.best.clone()).or(file);
        let alone = [
            ("--score", self.score.is_some()),
            ("--min-score", self.min_score.is_some()),
            ("--ties", self.ties),
        ];
        let Some(score) = score else {
            return match alone.into_iter().find(|(_, is_given)| *is_given) {
                Some((flag, _)) => Err(Failure::Usage(format!(
                    "{flag} is for a search for the best; say what is counted: --leading-zeros, --zeros, --leading HEXDIGIT, \
                     --best SCORE or --score-file FILE"
                ))),
                None => Ok(None),
            };
        };
        for (flag, given) in [("--score", self.score), ("--min-score", self.min_score)] {
            if let Some(given) = given.filter(|given| *given > score.max()) {
                return Err(Failure::Usage(format!(
                    "{flag} {given} cannot be reached: the most an address can score is {}",
                    score.max()
                )));
            }
        }
        let show = match (self.min_score, self.ties) {
            (Some(least), _) => Show::AtLeast(least),
            (None, true) => Show::Ties,
            (None, false) => Show::Better,
        };
        Ok(Some(Contest { score, show, enough: self.score }))
    }

    /// How patterns are read.
    pub fn options(&self) -> Options {
        Options { checksum: self.checksum, ..Options::default() }
    }
}

/// A file of weights is a few lines.
const MOST: u64 = 1 << 16;

/// Reads a sum from a file.
fn read_file(path: &Path) -> Result<Score, Failure> {
    let bad = |why: &dyn std::fmt::Display| Failure::Usage(format!("--score-file {}: {why}", path.display()));
    let bytes = input::read(&path.to_string_lossy(), MOST).map_err(|why| bad(&why))?;
    let text = str::from_utf8(&bytes).map_err(|_| bad(&"it is not text"))?;
    sum(text).map_err(|why| bad(&why))
}

/// Reads a table of weights; says the line of what is wrong.
fn sum(text: &str) -> Result<Score, String> {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(1, |span| line(span.start));
        format!("line {at}: {}", toml_mistake(error.message()))
    })?;
    // Where a name stands in the text: names are told apart by their lines only here.
    let line_of = |name: &str| text.lines().position(|row| row.contains(name)).map_or(1, |at| at + 1);
    if let Some(other) = table.keys().find(|key| *key != "weights") {
        return Err(format!("line {}: '{other}' is not known; give one table, [weights]", line_of(other)));
    }
    let weights = match table.get("weights") {
        Some(toml::Value::Table(weights)) => weights,
        Some(_) => {
            return Err("line 1: weights is a table: [weights], then lines as leading-zeros = 10".to_owned());
        }
        None => {
            return Err(format!(
                "it has no table [weights] with up to {MOST_PARTS} lines as leading-zeros = 10"
            ));
        }
    };
    let part = |(name, weight): (&String, &toml::Value)| {
        let at = line_of(name);
        let feature = Feature::parse(name).map_err(|why| format!("line {at}: {why}"))?;
        let weight =
            weight.as_integer().and_then(|weight| u32::try_from(weight).ok()).filter(|weight| *weight > 0);
        let weight = weight
            .ok_or_else(|| format!("line {at}: the weight of {name} is a whole number from 1 to 100"))?;
        Ok(Part { weight, feature })
    };
    let parts = weights.iter().map(part).collect::<Result<Vec<Part>, String>>()?;
    Score::sum(parts).map_err(|why| format!("line {}: {why}", line_of("[weights]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_old_are_scores() {
        let command = ScoreFlags::augment_args(clap::Command::new("scores"));
        for name in ["leading-zeros", "zeros", "leading"] {
            assert!(command.get_arguments().any(|argument| argument.get_long() == Some(name)), "{name}");
            assert!(SCORES.iter().any(|kind| kind.name.split(':').next() == Some(name)), "{name}");
        }
        assert_eq!(parse_digit("F"), Ok(Feature::Leading(15)));
        assert!(parse_digit("10").is_err() && parse_digit("").is_err() && parse_digit("g").is_err());
    }

    #[test]
    fn a_file_is_a_sum_and_its_mistakes_have_a_line() {
        let text = "# ours\n[weights]\nleading-zeros = 10\n\"like:dead..beef\" = 3\n";
        let expected = Score::parse("10*leading-zeros+3*like:dead..beef").expect("a score");
        let mut parts = sum(text).expect("a score").parts().to_vec();
        parts.sort_by_key(|part| std::cmp::Reverse(part.weight));
        assert_eq!(parts, expected.parts());
        for (text, says) in [
            ("", "no table [weights]"),
            ("[weights]\n", "nothing is counted"),
            ("weights = 3\n", "line 1: weights is a table"),
            ("[weights]\nzeros 3\n", "line 2"),
            ("[weights]\nzeros = 3\nzeroes = 4\n", "line 3: there is no score 'zeroes'"),
            ("[weights]\nzeros = 0\n", "line 2: the weight of zeros"),
            ("[weights]\nzeros = \"3\"\n", "line 2: the weight of zeros"),
            ("[weights]\nzeros = 101\n", "from 1 to 100, not 101"),
            ("[weights]\nzeros = 1\n\n[others]\n", "line 4: 'others' is not known"),
            ("[weights]\nuniswap = 100\n", "could be 44400"),
        ] {
            let error = sum(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
