//! How long things take, before they are begun.

use tempfile::tempdir;

use crate::harness::{INFEASIBLE, decimal, mine, text, warpsmith};

#[test]
fn scores_are_forecast_one_by_one() {
    let usual = ["eth", "--leading-zeros", "--estimate", "--device", "cpu", "--threads", "1"];
    let run = warpsmith(&[&usual[..], &["--json"]].concat()).code(0);
    let line = &run.json()[0];
    let scores = line["scores"].as_array().unwrap();
    assert!(scores.len() >= 4, "{line}");
    for (at, row) in scores.iter().enumerate() {
        let number = |field: &str| row[field].as_f64().unwrap_or_else(|| panic!("{field}: {row}"));
        assert_eq!(row["score"], at + 1);
        let difficulty = decimal(row, "difficulty");
        assert_eq!(difficulty, 256f64.powi(at as i32 + 1));
        assert!((number("expected_s") * line["rate"].as_f64().unwrap() / difficulty - 1.0).abs() < 1e-6);
        assert!(number("p50_s") < number("expected_s") && number("expected_s") < number("p90_s"), "{row}");
    }
    let run = warpsmith(&usual).code(0);
    assert!(run.stdout.contains("score") && run.stdout.contains("16,777,216"), "{run:?}");
    assert!(run.stdout.lines().all(|line| line.len() <= 80), "{run:?}");
    let run = warpsmith(&[&usual[..], &["--score", "3", "--json"]].concat()).code(0);
    assert_eq!(run.json()[0]["difficulty"], "16777216");
}

#[test]
fn each_is_forecast_by_the_last_that_is_found() {
    let estimate = |args: &[&str]| {
        let run = mine(&[args, &["--estimate", "--json"]].concat()).code(0);
        run.json().remove(0)
    };
    let line = estimate(&["qqq", "ppp", "qqq", "q", "--each"]);
    assert_eq!((&line["each"], &line["count"]), (&true.into(), &3.into()), "{line}");
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
    // Two of the same odds take one and a half times one of them; what is found at once takes nothing.
    let tries = number("expected_s") * number("rate") / 32_768.0;
    assert!((1.49..1.51).contains(&tries), "{tries}");
    let run = mine(&["qqq", "ppp", "--each", "--estimate"]).code(0);
    assert!(run.stdout.contains("patterns    2, each with a result:"), "{run:?}");
}

#[test]
fn a_scan_is_forecast_by_what_is_left_of_its_range() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (list, map) = (path("list"), path("map"));
    std::fs::write(&list, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n").unwrap();
    let scan = |more: &[&str]| {
        warpsmith(&[&["scan", "--targets", &list, "--device", "cpu", "--threads", "1"], more].concat())
    };
    let run = scan(&["--range", "2^60:2^61-1", "--map", &map, "--estimate", "--json"]).code(0);
    let line = &run.json()[0];
    assert_eq!((text(line, "event"), text(line, "keys")), ("estimate", "1152921504606846976"));
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
    assert!((number("whole_s") * number("rate") / 2f64.powi(60) - 1.0).abs() < 1e-6, "{line}");
    assert!((number("p50_s") * 2.0 / number("whole_s") - 1.0).abs() < 1e-9, "{line}");
    assert!(!std::fs::exists(&map).unwrap(), "nothing was begun");

    scan(&["--range", "2:fff", "--map", &map]).code(1);
    let run = scan(&["--range", "2:fff", "--map", &map, "--estimate"]).code(0);
    assert!(run.stdout.contains("keys        0 ") && run.stdout.contains("not covered yet"), "{run:?}");
    let run = scan(&["--range", "2^80:2^81-1", "--time-limit", "500ms"]).code(1);
    run.says(&["hopeless", "half of the range takes", "a day is enough for", "time limit reached"]);
}

#[test]
fn what_nobody_will_see_the_end_of_is_said_to_be_hopeless() {
    let run = mine(&[INFEASIBLE, "--time-limit", "500ms"]).code(1);
    let run = run.says(&[
        "hopeless  50 % within",
        "a day is enough for some",
        "fewer characters would",
        "no match",
    ]);
    // An estimate says so too, on stdout, and years by the trillion as such.
    let estimate = mine(&["z".repeat(24).as_str(), "--estimate"]).code(0);
    let estimate = estimate.stdout_says("\nhopeless    50 % within").stdout_says("a day is enough for some");
    let years = estimate.stdout.lines().find(|line| line.starts_with("50 % ")).unwrap();
    assert!(years.contains("e") && years.ends_with(" years") && years.len() < 30, "{years}");
    let scan = ["scan", "--range", "2^100:2^101-1", "--targets", "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"];
    let scan = warpsmith(&[&scan[..], &["--device", "cpu", "--threads", "1", "--estimate"]].concat()).code(0);
    scan.stdout_says("\nhopeless    half of the range takes").stdout_says("times the speed would bring");
    let example = run.stderr.split("such as '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    assert!(INFEASIBLE.starts_with(example), "{example}");
    let eth = |wanted: &[&str]| {
        let usual = ["--device", "cpu", "--threads", "1", "--time-limit", "500ms"];
        warpsmith(&[&["eth"], wanted, &usual].concat())
    };
    eth(&["--zeros", "--score", "15"]).says(&["hopeless", "a score of", "a lower --score"]);
    let run = mine(&["qqq", "--time-limit", "100s"]).code(0);
    assert!(!run.stderr.contains("hopeless"), "{run:?}");
    assert!(!mine(&["qqq", "--estimate"]).code(0).stdout.contains("hopeless"));
    let run = mine(&[INFEASIBLE, "--quiet", "--time-limit", "300ms"]).code(1);
    assert_eq!(run.stderr, "", "{run:?}");
}
