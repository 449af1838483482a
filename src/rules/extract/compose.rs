//! Compose files.

use serde_yaml::Value;

use super::Extracted;

/// Names how each service uses the checkout: `binds-checkout`, `builds-checkout` or `image`.
pub(super) fn compose(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let file = super::yaml(text)?;
    for (_, service) in file.get("services")?.as_mapping()? {
        let volumes = service.get("volumes").and_then(Value::as_sequence);
        let binds_checkout = volumes.into_iter().flatten().any(is_bind_of_checkout);
        let kind = if binds_checkout {
            "binds-checkout"
        } else if service.get("build").is_some() {
            "builds-checkout"
        } else {
            "image"
        };
        out.add("compose.services", kind, path);
    }
    Some(())
}

/// Tells a bind of the whole checkout or of a folder in it that code would be in, from one of a single settings file.
fn is_bind_of_checkout(volume: &Value) -> bool {
    let source = match volume {
        Value::String(text) => text.split(':').next().map(str::to_owned),
        other => other.get("source").and_then(Value::as_str).map(str::to_owned),
    };
    source.is_some_and(|source| {
        let source = source.trim_end_matches('/');
        let is_file = source.rsplit('/').next().is_some_and(|name| name.trim_start_matches('.').contains('.'));
        source == "." || source == "${PWD}" || (source.starts_with("./") && !is_file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_settings_file_is_no_bound_checkout() {
        let mut out = Extracted::default();
        let text = "services:\n  web: { build: ., volumes: ['.:/app'] }\n  db: { image: pg, volumes: ['./pg.conf:/etc/pg.conf'] }\n";
        compose("compose.yaml", text, &mut out).unwrap();
        let kinds: Vec<_> = out.items["compose.services"].iter().map(|item| item.value.as_str()).collect();
        assert_eq!(kinds, ["binds-checkout", "image"]);
    }
}
