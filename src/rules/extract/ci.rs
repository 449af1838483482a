//! Build services besides GitHub's: Azure Pipelines, `AppVeyor`, GitLab, Travis, `CircleCI`, Cirrus, sourcehut.

use serde_yaml::Value;

use super::{Extracted, system_of, texts, yaml};

/// Takes the images out of an Azure pipeline; a template or a variable that is not in the file is unresolved.
pub(super) fn azure(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let pipeline = yaml(text)?;
    let mut images = Vec::new();
    collect(&pipeline, &mut |key, value| match key {
        "vmImage" | "image" => images.extend(texts(value)),
        "template" => images.push("$(template)".to_owned()),
        _ => {}
    });
    for image in images {
        let mut values = vec![image.clone()];
        if let Some(name) = image.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')) {
            values.clear();
            collect(&pipeline, &mut |key, value| {
                if key == name {
                    values.extend(texts(value));
                }
            });
        }
        if values.is_empty() {
            out.add_unresolved("ci.systems");
            out.add_unresolved("azure.images");
        }
        for value in values {
            add_system(&value, "azure.images", path, out);
        }
    }
    Some(())
}

/// Takes the images out of an `AppVeyor` file; its default image is one with Visual Studio.
pub(super) fn appveyor(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let build = yaml(text)?;
    let mut images: Vec<String> = ["image", "os"].iter().filter_map(|key| build.get(*key)).flat_map(texts).collect();
    collect(&build, &mut |key, value| {
        if key == "APPVEYOR_BUILD_WORKER_IMAGE" {
            images.extend(texts(value));
        }
    });
    if images.is_empty() {
        images.push("Visual Studio".to_owned());
    }
    for image in images {
        add_system(&image, "appveyor.images", path, out);
    }
    Some(())
}

/// Takes images and runner tags out of a GitLab file.
pub(super) fn gitlab(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let pipeline = yaml(text)?;
    let mapping = pipeline.as_mapping()?;
    if mapping.contains_key("include") {
        out.add_unresolved("ci.systems");
    }
    for (name, job) in mapping {
        let tags = job.get("tags").map(texts).unwrap_or_default();
        if let Some(system) = tags.iter().find_map(|tag| system_of(tag)) {
            out.add_once("ci.systems", system, path);
        } else if name.as_str() == Some("image") || job.get("image").is_some() {
            out.add_once("ci.systems", "linux", path);
            out.add_once("ci.containers", "container", path);
        }
    }
    Some(())
}

/// Takes the systems out of the files of other services, told apart by their names.
pub(super) fn other(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let file = yaml(text)?;
    let mut found: Vec<&'static str> = Vec::new();
    let name = path.to_ascii_lowercase();
    if name.ends_with("travis.yml") {
        collect(&file, &mut |key, value| {
            if key == "os" {
                found.extend(texts(value).iter().filter_map(|text| system_of(text)));
            }
        });
        if found.is_empty() {
            found.push("linux");
        }
    } else {
        collect(&file, &mut |key, value| match key {
            "windows_container" => found.push("windows"),
            "macos" | "macos_instance" | "osx_instance" => found.push("macos"),
            "docker" | "container" | "arm_container" => found.push("linux"),
            "image" => found.extend(texts(value).iter().filter_map(|text| system_of(text))),
            "executor" => found.extend(texts(value).iter().filter_map(|text| system_of(&text.replace('/', "-")))),
            _ => {}
        });
        if !found.is_empty() && !found.contains(&"windows") {
            out.add_once("ci.containers", "container", path);
        }
    }
    for system in found {
        out.add_once("ci.systems", system, path);
    }
    Some(())
}

fn add_system(image: &str, name: &'static str, path: &str, out: &mut Extracted) {
    if let Some(system) = system_of(image) {
        out.add_once("ci.systems", system, path);
        out.add_once(name, system, path);
    } else {
        out.add_unresolved("ci.systems");
        out.add_unresolved(name);
    }
}

/// Calls a function on every key and value, at any depth.
fn collect(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Mapping(mapping) => {
            for (key, value) in mapping {
                if let Some(key) = key.as_str() {
                    visit(key, value);
                }
                collect(value, visit);
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| collect(item, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parser = fn(&str, &str, &mut Extracted) -> Option<()>;

    fn systems(parse: Parser, path: &str, text: &str) -> (Vec<String>, u64) {
        let mut out = Extracted::default();
        parse(path, text, &mut out).unwrap();
        let values = out.items.get("ci.systems").into_iter().flatten().map(|item| item.value.clone()).collect();
        (values, out.unresolved.get("ci.systems").copied().unwrap_or(0))
    }

    #[test]
    fn an_azure_matrix_is_resolved_and_a_template_is_not() {
        let text = "strategy:\n  matrix:\n    a: { img: ubuntu-latest }\n    b: { img: windows-2022 }\npool: { vmImage: \
                    $(img) }\n";
        assert_eq!(systems(azure, "azure-pipelines.yml", text), (vec!["linux".into(), "windows".into()], 0));
        assert_eq!(systems(azure, "azure-pipelines.yml", "jobs:\n- template: a.yml\n"), (vec![], 1));
    }

    #[test]
    fn appveyor_builds_on_windows_unless_it_says_otherwise() {
        assert_eq!(systems(appveyor, "appveyor.yml", "build: off\n"), (vec!["windows".into()], 0));
        assert_eq!(systems(appveyor, "appveyor.yml", "image: Ubuntu2204\n"), (vec!["linux".into()], 0));
    }

    #[test]
    fn gitlab_travis_and_others_are_read() {
        let text = "image: rust:1\nwin:\n  tags: [windows]\n";
        assert_eq!(systems(gitlab, ".gitlab-ci.yml", text).0, ["linux", "windows"]);
        assert_eq!(systems(other, ".travis.yml", "language: c\nos: [linux, osx]\n").0, ["linux", "macos"]);
        assert_eq!(systems(other, ".cirrus.yml", "a_task:\n  windows_container: { image: x }\n").0, ["windows"]);
    }
}
