//! `MSBuild` projects and shared properties.

use std::collections::{BTreeMap, BTreeSet};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Extracted, Item};

/// Switches whose value `true` tells something.
const FLAGS: [&str; 7] =
    ["UseWPF", "UseWindowsForms", "UseWinUI", "UseMaui", "EnableWindowsTargeting", "UseApplicationTrust", "UseWinRT"];
/// Switches for user interfaces that exist on Windows alone.
const WINDOWS_UI: [&str; 3] = ["UseWPF", "UseWindowsForms", "UseWinUI"];
/// Elements that name frameworks.
const FRAMEWORKS: [&str; 3] = ["TargetFramework", "TargetFrameworks", "TargetFrameworkVersion"];
/// Properties of shared files, kept only until [`resolve`] has used them.
const PROPERTIES: &str = "dotnet.properties";
/// Depth to which properties that refer to properties are followed.
const MAX_REFERENCES: usize = 4;

/// Takes frameworks, output types, flags and the style out of a project or props file.
pub(super) fn project(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let is_project = path.to_ascii_lowercase().ends_with("proj");
    let mut style = "old";
    let mut elements = Vec::new();
    walk(text, |element, parents| match element {
        Element::Open(start) => {
            let is_sdk = start.name().as_ref() == "Sdk"
                || (matches!(start.name().as_ref(), "Project" | "Import") && has_attribute(start, "Sdk"));
            if is_sdk {
                style = "sdk";
            }
            if start.name().as_ref() == "COMReference" {
                elements.push(("COMReference".to_owned(), "true".to_owned()));
            }
        }
        Element::Text(text) => elements.extend(parents.last().map(|name| (name.clone(), text.to_owned()))),
    })?;
    if is_project {
        out.add("dotnet.styles", style, path);
        let is_windows_ui = |(name, value): &(String, String)| {
            WINDOWS_UI.contains(&name.as_str()) && value.trim().eq_ignore_ascii_case("true")
        };
        let kind = if elements.iter().any(is_windows_ui) { "windows-ui" } else { "plain" };
        out.add("dotnet.kinds", kind, path);
    }
    for (name, value) in elements {
        let value = value.trim();
        if FRAMEWORKS.contains(&name.as_str()) {
            for framework in value.split(';').map(str::trim).filter(|text| !text.is_empty()) {
                out.add_once("dotnet.frameworks", framework, path);
            }
        } else if name == "OutputType" {
            out.add_once("dotnet.output_types", value, path);
        } else if name == "COMReference" || (FLAGS.contains(&name.as_str()) && value.eq_ignore_ascii_case("true")) {
            out.add_once("dotnet.flags", name.as_str(), path);
        }
        if !is_project {
            out.add(PROPERTIES, format!("{name}={value}"), path);
        }
    }
    Some(())
}

/// Replaces references to properties by what the shared files give for them, and lets a project without frameworks have
/// those of the shared files; what is left is unresolved.
pub(super) fn resolve(out: &mut Extracted) {
    let properties: BTreeMap<String, String> = out
        .items
        .remove(PROPERTIES)
        .into_iter()
        .flatten()
        .filter_map(|item| item.value.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let named = out.items.remove("dotnet.frameworks").unwrap_or_default();
    let (own, shared): (Vec<Item>, Vec<Item>) =
        named.into_iter().partition(|item| item.path.to_ascii_lowercase().ends_with("proj"));
    let with_own: BTreeSet<&str> = own.iter().map(|item| item.path.as_str()).collect();
    let projects: Vec<String> =
        out.items.get("dotnet.styles").into_iter().flatten().map(|it| it.path.clone()).collect();
    let mut all = Vec::new();
    for project in projects.iter().filter(|project| !with_own.contains(project.as_str())) {
        all.extend(shared.iter().map(|item| Item { value: item.value.clone(), path: project.clone() }));
    }
    if projects.is_empty() {
        all.extend(shared.iter().cloned());
    }
    all.extend(own);
    for item in all {
        let values = expand(&item.value, &properties, 0);
        for value in values.split(';').map(str::trim).filter(|value| !value.is_empty()) {
            if value.contains("$(") {
                out.add_unresolved("dotnet.frameworks");
            } else {
                out.add_once("dotnet.frameworks", value, &item.path);
            }
        }
    }
}

fn expand(value: &str, properties: &BTreeMap<String, String>, depth: usize) -> String {
    if depth == MAX_REFERENCES {
        return value.to_owned();
    }
    let Some((before, rest)) = value.split_once("$(") else { return value.to_owned() };
    let Some((name, after)) = rest.split_once(')') else { return value.to_owned() };
    let after = expand(after, properties, depth);
    match properties.get(name) {
        Some(known) => format!("{before}{}{after}", expand(known, properties, depth + 1)),
        None => format!("{before}$({name}){after}"),
    }
}

/// Names what a Visual C++ project makes: `driver`, or the lower-case configuration type (`application`, ...).
pub(super) fn visual_cpp(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let mut kind = None;
    walk(text, |element, parents| {
        let name = parents.last().map(String::as_str).unwrap_or_default();
        if let Element::Text(value) = element {
            if name == "DriverType" || (name == "PlatformToolset" && value.contains("KernelModeDriver")) {
                kind = Some("driver".to_owned());
            } else if name == "ConfigurationType" && kind.is_none() {
                kind = Some(value.trim().to_ascii_lowercase());
            }
        }
    })?;
    out.add("visual_cpp.kinds", kind.unwrap_or_else(|| "other".to_owned()), path);
    Some(())
}

enum Element<'a> {
    Open(&'a BytesStart<'a>),
    Text(&'a str),
}

/// Calls a function on every element and text with the names of the elements around it; `None` when it is no XML.
fn walk(text: &str, mut visit: impl FnMut(Element, &[String])) -> Option<()> {
    let mut reader = Reader::from_str(text);
    let mut parents: Vec<String> = Vec::new();
    loop {
        match reader.read_event().ok()? {
            Event::Eof => return Some(()),
            Event::Start(start) => {
                visit(Element::Open(&start), &parents);
                parents.push(start.local_name().as_ref().to_owned());
            }
            Event::Empty(start) => visit(Element::Open(&start), &parents),
            Event::End(_) => {
                parents.pop();
            }
            Event::Text(content) if !content.trim().is_empty() => visit(Element::Text(content.as_ref()), &parents),
            _ => {}
        }
    }
}

fn has_attribute(start: &BytesStart, name: &str) -> bool {
    start.attributes().flatten().any(|attribute| attribute.key.as_ref() == name)
}

#[cfg(test)]
mod tests {
    use super::super::{Extractor, Input, extract};

    fn frameworks(inputs: &[(&str, &str)]) -> (Vec<String>, u64) {
        let inputs: Vec<Input> = inputs.iter().map(|(path, text)| Input { path, text: Some(text) }).collect();
        let found = extract(Extractor::Dotnet, &inputs, &[]);
        let values =
            found.items.get("dotnet.frameworks").into_iter().flatten().map(|item| item.value.clone()).collect();
        (values, found.unresolved.get("dotnet.frameworks").copied().unwrap_or(0))
    }

    #[test]
    fn a_project_without_framework_has_that_of_the_shared_file() {
        let props = "<Project><PropertyGroup><Base>net9.0</Base><TargetFramework>$(Base)-windows</TargetFramework>\
                     </PropertyGroup></Project>";
        let project = "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup/></Project>";
        let found = frameworks(&[("Directory.Build.props", props), ("App/App.csproj", project)]);
        assert_eq!(found, (vec!["net9.0-windows".to_owned()], 0));
    }

    #[test]
    fn an_unknown_property_is_unresolved() {
        let project = "<Project Sdk=\"S\"><PropertyGroup><TargetFrameworks>net8.0;$(X)</TargetFrameworks>\
                       </PropertyGroup></Project>";
        assert_eq!(frameworks(&[("A.csproj", project)]), (vec!["net8.0".to_owned()], 1));
    }

    #[test]
    fn the_style_is_told_by_the_sdk() {
        let old = "<Project ToolsVersion=\"15.0\"><PropertyGroup><TargetFrameworkVersion>v4.8</TargetFrameworkVersion>\
                   <OutputType>WinExe</OutputType></PropertyGroup></Project>";
        let found = extract(Extractor::Dotnet, &[Input { path: "A.csproj", text: Some(old) }], &[]);
        assert_eq!(found.items["dotnet.styles"][0].value, "old");
        assert_eq!(found.items["dotnet.output_types"][0].value, "WinExe");
    }
}
