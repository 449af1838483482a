//! Values that were taken out of a repository's files before, in the place of the files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use rehome::rules::extract::{Extracted, Extractor, system_of};
use rehome::rules::source::{Fetched, Listed, Place, Source};
use serde_yaml::Value;

/// Events that start a build.
const BUILD_EVENTS: [&str; 4] = ["push", "pull_request", "workflow_call", "merge_group"];

/// The facts of one repository.
pub(crate) struct CorpusFacts {
    facts: Value,
    /// Extractors whose summed values were given already, for one file in the place of all.
    given: RefCell<BTreeSet<Extractor>>,
}

impl CorpusFacts {
    pub(crate) fn read(file: &Path) -> Result<Self, Box<dyn Error>> {
        let facts = serde_yaml::from_str(&std::fs::read_to_string(file)?)?;
        Ok(Self { facts, given: RefCell::default() })
    }

    fn at(&self, path: &str) -> Option<&Value> {
        path.split('/').try_fold(&self.facts, |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    fn texts(&self, path: &str) -> Vec<String> {
        self.at(path).map(texts).unwrap_or_default()
    }

    fn counts(&self, path: &str) -> Vec<(String, u64)> {
        let mapping = self.at(path).and_then(Value::as_mapping);
        let pairs = mapping.into_iter().flatten();
        pairs.filter_map(|(key, count)| Some((key.as_str()?.to_owned(), count.as_u64()?))).collect()
    }

    fn entry(&self, list: &str, path: &str) -> Option<&Value> {
        let entries = self.at(list)?.as_sequence()?;
        entries.iter().find(|entry| entry.get("path").and_then(Value::as_str) == Some(path))
    }

    fn is_first(&self, extractor: Extractor) -> bool {
        self.given.borrow_mut().insert(extractor)
    }

    fn dotnet(&self, out: &mut Extracted) {
        let number = |path: &str| self.at(path).and_then(Value::as_u64).unwrap_or(0);
        let projects = number("dotnet/projects");
        let old = number("dotnet/old_style_projects");
        let flags = self.counts("dotnet/flags");
        let windows_ui: u64 = flags
            .iter()
            .filter(|(name, _)| ["UseWPF", "UseWindowsForms", "UseWinUI"].contains(&name.as_str()))
            .map(|it| it.1)
            .max()
            .unwrap_or(0);
        for index in 0..projects {
            let path = format!("p{index}.csproj");
            out.add("dotnet.styles", if index < old { "old" } else { "sdk" }, &path);
            out.add("dotnet.kinds", if index < windows_ui { "windows-ui" } else { "plain" }, &path);
        }
        let mut named = 0;
        let add = |value: &str, count: u64, out: &mut Extracted| {
            for index in 0..count {
                if value.contains('$') {
                    out.add_unresolved("dotnet.frameworks");
                } else {
                    out.add("dotnet.frameworks", value, &format!("p{index}.csproj"));
                }
            }
        };
        for (value, count) in self.counts("dotnet/target_frameworks") {
            named += count;
            add(&value, count, out);
        }
        for value in self.texts("dotnet/props_files_frameworks") {
            add(&value, projects.saturating_sub(named), out);
        }
        for (name, _) in flags {
            out.add("dotnet.flags", name, "p0.csproj");
        }
        for name in self.texts("dotnet/props_files_flags") {
            out.add("dotnet.flags", name, "Directory.Build.props");
        }
        for (kind, count) in self.counts("dotnet/output_types") {
            (0..count).for_each(|index| out.add("dotnet.output_types", kind.clone(), &format!("p{index}.csproj")));
        }
    }

    fn workflow(&self, path: &str, out: &mut Extracted) {
        let Some(workflow) = self.entry("ci/github_actions", path) else { return };
        let list = |key: &str| workflow.get(key).map(texts).unwrap_or_default();
        if !list("triggers").iter().any(|event| BUILD_EVENTS.contains(&event.as_str())) {
            return;
        }
        let labels = list("runs_on");
        for label in &labels {
            match system_of(label) {
                Some(system) => out.add_once("ci.systems", system, path),
                None => out.add_unresolved("ci.systems"),
            }
        }
        let unresolved = workflow.get("runs_on_unresolved").and_then(Value::as_u64).unwrap_or(0);
        (0..unresolved).for_each(|_| out.add_unresolved("ci.systems"));
        if labels.is_empty() && unresolved == 0 {
            out.add_unresolved("ci.systems");
        }
        for tool in list("uses").into_iter().chain(list("run_first_words")) {
            out.add_once("ci.tools", tool, path);
        }
        if !list("containers").is_empty() {
            out.add_once("ci.containers", "container", path);
        }
    }

    fn images(images: &[String], name: &'static str, path: &str, out: &mut Extracted) {
        for image in images {
            if let Some(system) = system_of(image) {
                out.add_once("ci.systems", system, path);
                out.add_once(name, system, path);
            } else {
                out.add_unresolved("ci.systems");
                out.add_unresolved(name);
            }
        }
    }

    fn azure(&self, path: &str, out: &mut Extracted) {
        let Some(pipeline) = self.entry("ci/azure_pipelines", path) else { return };
        let list = |key: &str| pipeline.get(key).map(texts).unwrap_or_default();
        let mut images = list("images");
        images.extend(list("os"));
        if images.is_empty() {
            images.push("template".to_owned());
        }
        Self::images(&images, "azure.images", path, out);
    }

    fn other_ci(&self, path: &str, out: &mut Extracted) {
        let mut found: Vec<&str> = Vec::new();
        if path.contains("travis") {
            found.extend(self.texts("ci/travis/os").iter().filter_map(|os| system_of(os)));
            if found.is_empty() {
                found.push("linux");
            }
        } else if path.contains("cirrus") {
            for kind in self.texts("ci/cirrus/kinds") {
                found.push(match kind.as_str() {
                    "windows_container" => "windows",
                    "macos_instance" => "macos",
                    _ => "linux",
                });
            }
        } else if path.contains("circleci") {
            if !self.texts("ci/circleci/docker_images").is_empty() {
                found.push("linux");
            }
            let has = |key: &str| self.at(&format!("ci/circleci/{key}")).and_then(Value::as_bool) == Some(true);
            found.extend(has("windows_orb").then_some("windows"));
            found.extend(has("macos").then_some("macos"));
        } else {
            found.extend(self.texts("ci/builds_sr_ht").iter().filter_map(|image| system_of(image)));
        }
        for system in found {
            out.add_once("ci.systems", system, path);
        }
    }

    fn cargo(&self, out: &mut Extracted) {
        for list in ["cargo/windows_crates_unconditional", "cargo/unix_crates_unconditional"] {
            for (name, count) in self.counts(list).into_iter().filter(|(name, _)| !name.starts_with("workspace:")) {
                (0..count).for_each(|_| out.add("cargo.dependencies", name.clone(), "Cargo.toml"));
            }
        }
        for (family, count) in self.counts("cargo/target_specific_dependencies") {
            (0..count).for_each(|_| out.add("cargo.target_tables", family.clone(), "Cargo.toml"));
        }
    }

    fn node(&self, path: &str, out: &mut Extracted) {
        let Some(package) = self.entry("node/packages", path) else { return };
        let list = |key: &str| package.get(key).map(texts).unwrap_or_default();
        for flag in list("script_flags") {
            let script = match flag.as_str() {
                ".sh" => "./x.sh".to_owned(),
                "env-prefix" => "NAME=value run".to_owned(),
                other => format!("{other} x"),
            };
            out.add("node.scripts", script, path);
        }
        for word in list("script_first_words") {
            out.add("node.scripts", word, path);
        }
        for name in list("notable_deps") {
            out.add("node.dependencies", name, path);
        }
        for system in list("os") {
            out.add("node.os", system, path);
        }
        if package.get("unity_package").is_some() {
            out.add("node.keys", "unity", path);
        }
    }

    fn python(&self, file: &str, path: &str, out: &mut Extracted) {
        let Some(metadata) = self.facts.get("python").and_then(|python| python.get(file)) else { return };
        let classifiers = metadata.get("os_classifiers").map(texts).unwrap_or_default();
        for classifier in &classifiers {
            out.add("python.classifiers", classifier.trim().trim_start_matches(":: "), path);
        }
        let is_windows_only = !classifiers.is_empty() && classifiers.iter().all(|it| it.contains("Windows"));
        if metadata.get("windows_deps").and_then(Value::as_bool) == Some(true) {
            // The facts do not tell whether a marker limits them.
            out.add("python.requirements", if is_windows_only { "pywin32" } else { "pywin32;" }, path);
        }
    }

    fn presets(&self, path: &str, out: &mut Extracted) {
        let Some(presets) = self.entry("cmake/presets", path) else { return };
        let list = |key: &str| presets.get(key).map(texts).unwrap_or_default();
        let is_windows = |text: &String| {
            let text = text.to_lowercase();
            ["windows", "win32", "msvc", "visual studio"].iter().any(|word| text.contains(word))
        };
        let is_unix =
            |text: &String| ["linux", "darwin", "macos"].iter().any(|word| text.to_lowercase().contains(word));
        let words = [list("names"), list("host_conditions"), list("generators")].concat();
        let system = match (words.iter().any(is_windows), words.iter().any(is_unix)) {
            (true, false) => "windows",
            (false, true) => "unix",
            _ => "any",
        };
        out.add("cmake.preset_systems", system, path);
    }

    fn text_of(&self, place: &str) -> Option<String> {
        let name = place.to_lowercase();
        if name == "cmakelists.txt" {
            let root = self.at("cmake/root")?;
            let count = |key: &str| root.get(key).and_then(Value::as_u64).unwrap_or(0);
            let is = |key: &str| root.get(key).and_then(Value::as_bool) == Some(true);
            let mut text = "if(WIN32)\n".repeat(usize::try_from(count("if_win32")).ok()?);
            text += &"if(UNIX)\n".repeat(usize::try_from(count("if_unix")).ok()?);
            text += if is("pkg_config") { "find_package(PkgConfig REQUIRED)\n" } else { "" };
            text += if is("ament_or_catkin") { "find_package(ament_cmake REQUIRED)\n" } else { "" };
            text += if is("rejects_other_than_windows") { "if(NOT WIN32)\nmessage(FATAL_ERROR x)\n" } else { "" };
            return Some(text);
        }
        if let Some(makefile) = self.entry("make", place) {
            let words = makefile.get("recipe_first_words").map(texts).unwrap_or_default();
            let mut text = String::new();
            for word in &words {
                text += &[
                    "	", word, " x
",
                ]
                .concat();
            }
            let is = |key: &str| makefile.get(key).and_then(Value::as_bool) == Some(true);
            text += if is("windows_branch") { "ifeq ($(OS),Windows_NT)\n" } else { "" };
            text += if is("uname") { "UNAME := $(shell uname -s)\n" } else { "" };
            return Some(text);
        }
        let read = self.texts("readme_mentions/read");
        if read.iter().any(|file| file == place) {
            return Some(self.texts("readme_mentions/words").join("\n"));
        }
        None
    }
}

impl Source for CorpusFacts {
    fn read(&self, place: &str, max_bytes: usize) -> Fetched {
        /// Bytes that are read only to see what a file is; for them the sample of line endings answers.
        const KIND_BYTES: usize = 1024;
        if let Some(text) = self.text_of(place) {
            return Fetched::Bytes { data: text.into_bytes(), is_truncated: false };
        }
        let count = |key: &str| self.at(&format!("blobs_with_crlf/{key}")).and_then(Value::as_u64).unwrap_or(0);
        if max_bytes == KIND_BYTES && count("sampled") > 0 {
            let text = if count("crlf") * 2 >= count("sampled") { "a\r\n" } else { "a\n" };
            return Fetched::Bytes { data: text.into(), is_truncated: false };
        }
        Fetched::Unknown
    }

    fn list(&self, _place: &str, _max_names: usize) -> Listed {
        Listed::Unknown
    }

    fn look(&self, _place: &str) -> Place {
        Place::Unknown
    }

    fn modified_at(&self, _place: &str) -> Option<i64> {
        None
    }

    fn values(&self, extractor: Extractor, path: &str) -> Option<Extracted> {
        let mut out = Extracted::default();
        match extractor {
            Extractor::Dotnet if self.is_first(extractor) => self.dotnet(&mut out),
            Extractor::Cargo if self.is_first(extractor) => self.cargo(&mut out),
            Extractor::VisualCpp if self.is_first(extractor) => {
                let drivers = self.at("visual_cpp/driver_projects").and_then(Value::as_u64).unwrap_or(0);
                out.add("visual_cpp.kinds", if drivers > 0 { "driver" } else { "application" }, path);
            }
            Extractor::Docker if self.is_first(extractor) => {
                for (base, _) in self.counts("docker/bases") {
                    if base.contains('$') {
                        out.add_unresolved("docker.bases");
                    } else {
                        out.add("docker.bases", base, path);
                    }
                }
            }
            Extractor::Workflows => self.workflow(path, &mut out),
            Extractor::Azure => self.azure(path, &mut out),
            Extractor::Appveyor => {
                let images =
                    self.entry("ci/appveyor", path).and_then(|it| it.get("image")).map(texts).unwrap_or_default();
                let images = if images.is_empty() { vec!["Visual Studio".to_owned()] } else { images };
                Self::images(&images, "appveyor.images", path, &mut out);
            }
            Extractor::Gitlab => {
                if !self.texts("ci/gitlab/images").is_empty() {
                    out.add_once("ci.systems", "linux", path);
                }
                if self.at("ci/gitlab/tags_windows").and_then(Value::as_bool) == Some(true) {
                    out.add_once("ci.systems", "windows", path);
                }
            }
            Extractor::OtherCi => self.other_ci(path, &mut out),
            Extractor::CargoConfig => {
                let targets = self.texts("cargo/config/build_target");
                targets.into_iter().filter(|it| !it.is_empty()).for_each(|it| out.add("cargo.build_target", it, path));
            }
            Extractor::Node => self.node(path, &mut out),
            Extractor::Pyproject => self.python("pyproject.toml", path, &mut out),
            Extractor::SetupCfg => self.python("setup.cfg", path, &mut out),
            Extractor::SetupPy => self.python("setup.py", path, &mut out),
            Extractor::Requirements
                if self.at("python/unix_server_requirements").and_then(Value::as_bool) == Some(true) =>
            {
                out.add_once("python.requirements", "gunicorn", path);
            }
            Extractor::CmakePresets => self.presets(path, &mut out),
            Extractor::Attributes => {
                let entry = self.entry("gitattributes", path);
                for (key, ending) in [("crlf", "crlf"), ("lf", "lf")] {
                    let patterns = entry.and_then(|it| it.get(key)).map(texts).unwrap_or_default();
                    for pattern in &patterns {
                        out.add("attributes.eol", format!("{pattern} {ending}"), path);
                    }
                }
            }
            Extractor::Editorconfig => {
                let sections = self.at("editorconfig_end_of_line").and_then(Value::as_mapping);
                for (section, ending) in sections.into_iter().flatten() {
                    if let (Some(section), Some(ending)) = (section.as_str(), ending.as_str()) {
                        out.add("editorconfig.end_of_line", format!("{section} {ending}"), path);
                    }
                }
            }
            Extractor::Compose => {
                let binds = self.entry("compose", path).and_then(|it| it.get("bind_mount_of_checkout"));
                let kind = if binds.and_then(Value::as_bool) == Some(true) { "binds-checkout" } else { "image" };
                out.add("compose.services", kind, path);
            }
            Extractor::Vscode => {
                let words = [self.texts("vscode/launch_types"), self.texts("vscode/tasks/commands")].concat();
                for word in words {
                    out.add_once("vscode.types", word, path);
                }
            }
            _ => {}
        }
        Some(out)
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Sequence(items) => items.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}
