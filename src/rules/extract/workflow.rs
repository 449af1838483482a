//! GitHub workflows: which systems the build runs on.

use serde_yaml::Value;

use super::{Extracted, system_of, texts, yaml};

/// Events that start a build; a workflow with others alone is no build evidence.
const BUILD_EVENTS: [&str; 4] = ["push", "pull_request", "workflow_call", "merge_group"];
/// Takes the systems, tools and containers of the build jobs out of a workflow.
///
/// Workflows and jobs named by one of the chores are skipped: most Windows-only projects have more chores on Ubuntu than
/// builds on Windows, so that counting every `runs-on` gives the wrong answer.
/// Matrix values are resolved. A job in a reusable workflow, or on a runner that an expression chooses, is unresolved.
pub(super) fn workflow(path: &str, text: &str, chores: &[String], out: &mut Extracted) -> Option<()> {
    let workflow = yaml(text)?;
    let name = workflow.get("name").and_then(Value::as_str).unwrap_or_default();
    if !is_build(&workflow) || is_chore(name, chores) {
        return Some(());
    }
    for (id, job) in workflow.get("jobs")?.as_mapping()? {
        let id = id.as_str().unwrap_or_default();
        let name = job.get("name").and_then(Value::as_str).unwrap_or_default();
        if !is_chore(id, chores) && !is_chore(name, chores) {
            read_job(job, path, out);
        }
    }
    Some(())
}

fn is_build(workflow: &Value) -> bool {
    let events: Vec<String> = match workflow.get("on") {
        Some(Value::Mapping(events)) => events.keys().flat_map(texts).collect(),
        Some(other) => texts(other),
        None => Vec::new(),
    };
    events.iter().any(|event| BUILD_EVENTS.contains(&event.as_str()))
}

/// Tells a chore by a whole word of its name.
fn is_chore(name: &str, chores: &[String]) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| chores.iter().any(|chore| word == chore || word.strip_suffix('s') == Some(chore)))
}

fn read_job(job: &Value, path: &str, out: &mut Extracted) {
    if job.get("uses").is_some() {
        out.add_unresolved("ci.systems");
        return;
    }
    let Some(runner) = job.get("runs-on") else { return };
    let matrix = job.get("strategy").and_then(|strategy| strategy.get("matrix"));
    for labels in resolve(&runner_text(runner), matrix) {
        match system_of_expression(&labels) {
            Some(system) => out.add_once("ci.systems", system, path),
            None => out.add_unresolved("ci.systems"),
        }
    }
    if job.get("container").is_some() {
        out.add_once("ci.containers", "container", path);
    }
    for step in job.get("steps").and_then(Value::as_sequence).into_iter().flatten() {
        if let Some(action) = step.get("uses").and_then(Value::as_str) {
            out.add_once("ci.tools", action.split('@').next().unwrap_or(action), path);
        }
        let script = step.get("run").and_then(Value::as_str).unwrap_or_default();
        for word in script.lines().filter_map(|line| line.split_whitespace().next()) {
            out.add_once("ci.tools", word, path);
        }
    }
}

/// Joins the labels of a runner to one text.
fn runner_text(runner: &Value) -> String {
    match runner {
        Value::Mapping(group) => {
            let part = |key: &str| group.get(key).map(texts).unwrap_or_default();
            [part("labels"), part("group")].concat().join(" ")
        }
        other => texts(other).join(" "),
    }
}

/// Names the system of a label; of an expression with several, only when all agree.
fn system_of_expression(label: &str) -> Option<&'static str> {
    let Some((before, rest)) = label.split_once("${{") else { return system_of(label) };
    // Not the conditions but the texts that an expression can yield are labels: `a == 'x' && 'big' || 'ubuntu-latest'`.
    let mut systems: Vec<&'static str> = rest.split('\'').skip(1).step_by(2).filter_map(system_of).collect();
    systems.extend(system_of(before));
    systems.dedup();
    match systems[..] {
        [system] => Some(system),
        _ => None,
    }
}

/// Returns every text that a runner expression can become by the values of the matrix.
fn resolve(text: &str, matrix: Option<&Value>) -> Vec<String> {
    /// Combinations that are written out; larger matrices exist, their systems come up early.
    const MAX_TEXTS: usize = 64;
    let mut done = vec![text.to_owned()];
    for _ in 0..3 {
        let mut next = Vec::new();
        for text in done {
            match matrix_reference(&text) {
                Some((start, end, path)) => {
                    let values = matrix.map(|matrix| matrix_values(matrix, &path)).unwrap_or_default();
                    if values.is_empty() {
                        // Kept as an expression of something else, so that it counts as unresolved.
                        next.push(format!("{}${{{{ unknown }}}}{}", &text[..start], &text[end..]));
                    }
                    next.extend(values.iter().map(|value| format!("{}{value}{}", &text[..start], &text[end..])));
                }
                None => next.push(text),
            }
        }
        next.truncate(MAX_TEXTS);
        done = next;
    }
    done
}

/// Finds the first `${{ matrix.a.b }}`: its start, its end and the path in the matrix.
fn matrix_reference(text: &str) -> Option<(usize, usize, Vec<String>)> {
    let mut from = 0;
    while let Some(offset) = text[from..].find("${{") {
        let start = from + offset;
        let end = start + text[start..].find("}}")? + 2;
        let inner = text[start + 3..end - 2].trim();
        let plain = inner.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
        if let Some(path) = inner.strip_prefix("matrix.").filter(|_| plain) {
            return Some((start, end, path.split('.').map(str::to_owned).collect()));
        }
        from = end;
    }
    None
}

/// Returns the values that `matrix.<path>` can have, those of `include` among them.
fn matrix_values(matrix: &Value, path: &[String]) -> Vec<String> {
    let Some((key, rest)) = path.split_first() else { return Vec::new() };
    let follow = |value: &Value| rest.iter().try_fold(value, |value, key| value.get(key.as_str())).cloned();
    let axis = matrix.get(key.as_str()).and_then(Value::as_sequence);
    let extra = matrix.get("include").and_then(Value::as_sequence);
    let included = extra.into_iter().flatten().filter_map(|entry| entry.get(key.as_str()));
    let mut values: Vec<String> = Vec::new();
    for value in axis.into_iter().flatten().chain(included).filter_map(follow) {
        // A list of labels is one runner.
        let text = texts(&value).join(" ");
        if !text.is_empty() && !values.contains(&text) {
            values.push(text);
        }
    }
    if values.is_empty() {
        let single = matrix.get(key.as_str()).filter(|value| value.is_mapping()).and_then(follow);
        values.extend(single.iter().flat_map(texts));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn systems(text: &str) -> (Vec<String>, u64) {
        let mut out = Extracted::default();
        workflow(".github/workflows/ci.yml", text, &["lint".to_owned(), "label".to_owned()], &mut out).unwrap();
        let values = out.items.get("ci.systems").into_iter().flatten().map(|item| item.value.clone()).collect();
        (values, out.unresolved.get("ci.systems").copied().unwrap_or(0))
    }

    #[test]
    fn matrix_values_are_resolved_also_in_includes_and_composed_labels() {
        let text = "on: [push]\njobs:\n  test:\n    strategy:\n      matrix:\n        os: [ubuntu, windows]\n        \
                    include:\n          - { os: macos }\n    runs-on: ${{ matrix.os }}-latest\n";
        assert_eq!(systems(text), (vec!["linux".into(), "windows".into(), "macos".into()], 0));
        let nested = "on: push\njobs:\n  b:\n    strategy: { matrix: { config: [{ os: windows-2022 }] } }\n    \
                      runs-on: ${{ matrix.config.os }}\n";
        assert_eq!(systems(nested), (vec!["windows".into()], 0));
    }

    #[test]
    fn a_reusable_workflow_or_an_unknown_runner_is_unresolved() {
        let text = "on: push\njobs:\n  a: { uses: ./.github/workflows/b.yml }\n  c: { runs-on: '${{ inputs.os }}' }\n";
        assert_eq!(systems(text), (vec![], 2));
    }

    #[test]
    fn an_expression_with_one_possible_system_is_that_system() {
        let text = "on: push\njobs:\n  a: { runs-on: \"${{ github.repository == 'a/b' && 'ubuntu-big' || \
                    'ubuntu-latest' }}\" }\n";
        assert_eq!(systems(text), (vec!["linux".into()], 0));
    }

    #[test]
    fn chores_and_workflows_without_a_build_event_are_skipped() {
        let scheduled = "on: { schedule: [{ cron: '0 0 * * *' }] }\njobs:\n  a: { runs-on: ubuntu-latest }\n";
        assert_eq!(systems(scheduled), (vec![], 0));
        let mixed = "on: push\njobs:\n  lint: { runs-on: ubuntu-latest }\n  build: { runs-on: windows-latest }\n";
        assert_eq!(systems(mixed), (vec!["windows".into()], 0));
        let chores = ["label".to_owned()];
        assert!(is_chore("Check labels", &chores) && !is_chore("relabeling-test", &chores));
    }
}
