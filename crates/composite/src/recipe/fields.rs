//! The keys of one object, each taken once and checked for its kind.

use serde_json::{Map, Value};

pub(super) struct Fields {
    found: Map<String, Value>,
    /// Where the object is, for messages: empty for the outermost one.
    place: &'static str,
}

impl Fields {
    /// Refuses a key that is not known, and says which one is nearest.
    pub(super) fn of(value: Value, place: &'static str, known: &[&str]) -> Result<Self, String> {
        let Value::Object(found) = value else {
            return Err("it is no JSON object".to_owned());
        };
        if let Some(key) = found.keys().find(|key| !known.contains(&key.as_str())) {
            let fields = Self { found: Map::new(), place };
            return Err(format!("the key `{}` is not known{}", fields.path(key), nearest(key, known)));
        }
        Ok(Self { found, place })
    }

    fn path(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.found.shift_remove(key)
    }

    pub(super) fn wrong(&self, key: &str, found: &Value, wanted: &str) -> String {
        format!("{} is {}, not {wanted}", self.path(key), short(found))
    }

    /// `None` where the key is left out, and where it is null.
    fn given<T>(
        &mut self,
        key: &str,
        wanted: &str,
        of: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Result<Option<T>, String> {
        match self.take(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => of(value).map(Some).map_err(|value| self.wrong(key, &value, wanted)),
        }
    }

    pub(super) fn object(&mut self, key: &str) -> Result<Option<Map<String, Value>>, String> {
        self.given(key, "an object", |value| match value {
            Value::Object(object) => Ok(object),
            other => Err(other),
        })
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        self.given(key, "a text", |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, String> {
        self.given(key, "true or false", |value| value.as_bool().ok_or(value))
    }

    pub(super) fn count(&mut self, key: &str) -> Result<Option<u64>, String> {
        self.given(key, "a whole number of 0 or more", |value| value.as_u64().ok_or(value))
    }

    pub(super) fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        self.given(key, "a list of texts", |value| {
            let list = value.as_array().and_then(|list| {
                list.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
            });
            list.ok_or(value)
        })
    }
}

/// A value as a person would name it, without its whole content.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 { text } else { text.chars().take(40).chain("...".chars()).collect() }
}

/// What was probably meant, as the rest of a sentence.
pub(super) fn nearest(found: &str, known: &[&str]) -> String {
    let close = |name: &&&str| strsim::damerau_levenshtein(found, name);
    match known.iter().min_by_key(close) {
        Some(name) if close(&name) <= 3.max(found.chars().count() / 3) => {
            format!(" (the nearest is `{name}`)")
        }
        _ => format!(" (known are {})", known.join(", ")),
    }
}
