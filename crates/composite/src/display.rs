//! A composite as a table for a terminal.

use std::fmt;

use onnx_graph::Port;

use crate::{Composite, GraphFile, SettledBy, error::type_of};

impl fmt::Display for Composite {
    /// Both graphs with their ports and what each port is for, what runs per image and per prompt, and what is not used. Values that
    /// are kept with an image are marked so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (encoder, decoder) = (&self.pair.encoder, &self.pair.decoder);
        let ports = [&encoder.inputs, &encoder.outputs, &decoder.inputs, &decoder.outputs];
        let types: Vec<Vec<String>> = ports.iter().map(|ports| ports.iter().map(type_of).collect()).collect();
        let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default();
        let columns = Columns {
            name: width(&mut ports.iter().flat_map(|p| p.iter()).map(|p| p.name.chars().count())),
            shape: width(&mut types.iter().flatten().map(|text| text.chars().count())),
        };
        let [encoder_in, encoder_out, decoder_in, decoder_out] = types.as_slice() else { return Ok(()) };
        head(f, "image encoder", encoder)?;
        columns.ports(f, "in", &encoder.inputs, encoder_in, |port| self.encoder_input(port))?;
        columns.ports(f, "out", &encoder.outputs, encoder_out, |port| self.encoder_output(port))?;
        head(f, "mask decoder", decoder)?;
        columns.ports(f, "in", &decoder.inputs, decoder_in, |port| self.decoder_input(port))?;
        columns.ports(f, "out", &decoder.outputs, decoder_out, |port| self.decoder_output(port))?;
        write!(f, "picture         {}", self.preprocessing)?;
        for unused in &self.unused {
            write!(f, "\nnot used        {}, a {}", unused.graph.file_name(), unused.role)?;
        }
        for skipped in &self.skipped {
            let name = skipped.path.file_name().unwrap_or_default().to_string_lossy();
            write!(f, "\nnot read        {name}: {}", skipped.rule)?;
        }
        Ok(())
    }
}

/// Widths of the columns that all ports share.
struct Columns {
    name: usize,
    shape: usize,
}

impl Columns {
    fn ports(
        &self,
        f: &mut fmt::Formatter<'_>,
        side: &str,
        ports: &[Port],
        types: &[String],
        purpose: impl Fn(&Port) -> String,
    ) -> fmt::Result {
        let &Self { name, shape } = self;
        for (at, (port, of)) in ports.iter().zip(types).enumerate() {
            let side = if at == 0 { side } else { "" };
            let line = format!("  {side:4}{:name$}  {of:shape$}  {}", port.name, purpose(port));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn head(f: &mut fmt::Formatter<'_>, role: &str, graph: &GraphFile) -> fmt::Result {
    let quantized = if graph.quantized { ", quantised" } else { "" };
    writeln!(f, "{role:14}  {}, {}{quantized}", graph.file_name(), graph.precision)
}

impl Composite {
    fn encoder_input(&self, port: &Port) -> String {
        let prompt = &self.pair.prompt;
        if port.name == self.pair.image {
            "the picture".to_owned()
        } else if port.name == prompt.coordinates {
            format!("x and y of {} points, {}", prompt.slots, prompt.space)
        } else {
            "1 on the object, 0 beside it, -1 no point".to_owned()
        }
    }

    fn encoder_output(&self, port: &Port) -> String {
        let fed: Vec<&str> = self
            .pair
            .wires
            .iter()
            .filter(|wire| wire.output == port.name)
            .map(|wire| wire.input.as_str())
            .collect();
        if fed.is_empty() {
            return "not used".to_owned();
        }
        let when = if self.pair.needs(&port.name).points { "per prompt" } else { "per image, kept" };
        if fed == [port.name.as_str()] { when.to_owned() } else { format!("{when}; to {}", fed.join(", ")) }
    }

    fn decoder_input(&self, port: &Port) -> String {
        match self.pair.wires.iter().find(|wire| wire.input == port.name) {
            Some(wire) if wire.settled_by == SettledBy::Name => String::new(),
            Some(wire) => match &wire.settled_by {
                // Short, for a terminal's width.
                SettledBy::Contract(rule) => format!("from {} (rule {rule})", wire.output),
                by => format!("from {} ({by})", wire.output),
            },
            None => "nothing feeds it".to_owned(),
        }
    }

    fn decoder_output(&self, port: &Port) -> String {
        let pair = &self.pair;
        match &port.name {
            name if *name == pair.masks => "logits of the masks".to_owned(),
            name if *name == pair.scores => "a score for each".to_owned(),
            _ => "not used".to_owned(),
        }
    }
}
