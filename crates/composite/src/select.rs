use std::{collections::HashSet, path::Path};

use onnx_graph::{Port, PrecisionClass};

use crate::{
    Error, GraphFile, PromptPorts, Rejection, Result, Rule, SettledBy, Wire, Wiring,
    outputs::{self, only},
    prompt_ports,
    unify::unify,
    wiring,
};

/// An image encoder and the mask decoder that takes what it gives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pair {
    /// The encoder's graph.
    pub encoder: GraphFile,
    /// The decoder's graph.
    pub decoder: GraphFile,
    /// Name of the encoder's image input.
    pub image: String,
    /// The encoder's point prompt.
    pub prompt: PromptPorts,
    /// What feeds each input of the decoder, sorted by its name.
    pub wires: Vec<Wire>,
    /// Name of the decoder's masks.
    pub masks: String,
    /// Name of the decoder's scores.
    pub scores: String,
}

/// What an output of the encoder is computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) image: bool,
    pub(crate) points: bool,
}

impl Pair {
    pub(crate) fn needs(&self, output: &str) -> Needs {
        let from = |name: &String| self.encoder.inputs_of(output).any(|input| input == name);
        Needs {
            image: from(&self.image),
            points: from(&self.prompt.coordinates) || from(&self.prompt.labels),
        }
    }
}

/// Chooses the one best pair among `graphs`, whatever their order.
///
/// `precisions` lists the precisions that may be used, best first; among pairs of one precision an unquantised one is
/// better. `wiring` says how their ports are joined. No pair, and several equally good ones, are errors that name what was found.
/// `folder` is only named in them, and `unreadable` graphs only listed.
pub fn select(
    folder: &Path,
    graphs: &[GraphFile],
    unreadable: Vec<Rejection>,
    precisions: &[PrecisionClass],
    wiring: &Wiring,
) -> Result<Pair> {
    // The listing's order must not even show in the reason that is given.
    let mut graphs: Vec<&GraphFile> = graphs.iter().collect();
    graphs.sort_by(|a, b| a.path.cmp(&b.path));
    let crowded = crowded_folders(&graphs, &unreadable);
    let wiring = wiring.resolve()?;
    let search = Search { all: &graphs, precisions, crowded: &crowded, wiring: &wiring };
    let mut fitting: Vec<(Rank, Pair)> = Vec::new();
    let mut rejected = unreadable.clone();
    for &graph in &graphs {
        match search.judge(graph) {
            Ok(pairs) => fitting.extend(pairs),
            Err(rule) => rejected.push(reject(graph, rule)),
        }
    }
    let Some(best) = fitting.iter().map(|(rank, _)| *rank).min() else {
        rejected.sort_by(|a, b| a.path.cmp(&b.path));
        return Err(Error::NoPair { folder: folder.to_owned(), graphs: rejected, other_files: Vec::new() });
    };
    fitting.retain(|(rank, _)| *rank == best);
    if fitting.len() > 1 {
        let candidates = fitting.into_iter().map(|(_, p)| (p.encoder.path, p.decoder.path)).collect();
        return Err(Error::SeveralPairs { candidates });
    }
    let (_, pair) = fitting.remove(0);
    if let Some((input, output)) = wiring.loose_end(&pair.encoder, &pair.decoder) {
        let (encoder, decoder) = (pair.encoder.path.clone(), pair.decoder.path.clone());
        return Err(Error::LooseWire {
            input: input.to_owned(),
            output: output.to_owned(),
            encoder,
            decoder,
        });
    }
    wiring::check(&pair.encoder, &pair.wires)?;
    Ok(pair)
}

fn reject(graph: &GraphFile, rule: Rule) -> Rejection {
    let (inputs, outputs) = (graph.inputs.clone(), graph.outputs.clone());
    Rejection { path: graph.path.clone(), inputs, outputs, rule }
}

/// How good a pair is, least first: the place of its precision in the preference, then unquantised before quantised.
type Rank = (usize, bool);

/// What every couple of graphs is held against.
struct Search<'s> {
    all: &'s [&'s GraphFile],
    precisions: &'s [PrecisionClass],
    crowded: &'s HashSet<&'s Path>,
    wiring: &'s wiring::Resolved<'s>,
}

impl Search<'_> {
    /// All pairs with `graph` as encoder, or the first rule that keeps it out of every pair.
    fn judge(&self, graph: &GraphFile) -> Result<Vec<(Rank, Pair)>, Rule> {
        for ports in [&graph.inputs, &graph.outputs] {
            let mut names = HashSet::new();
            if let Some(twice) = ports.iter().find(|p| !names.insert(p.name.as_str())) {
                return Err(Rule::DuplicatePort(twice.name.clone()));
            }
        }
        let Some(preference) = self.precisions.iter().position(|p| *p == graph.precision) else {
            return Err(Rule::NotAskedFor(graph.precision));
        };
        let Some(image) = image_input(&graph.inputs) else {
            return Err(self.as_decoder(graph).unwrap_or(Rule::NoRole));
        };
        let mut pairs = Vec::new();
        for decoder in self.all.iter().filter(|d| d.path != graph.path && self.joined(graph, d)) {
            // What is wrong with a decoder is said in its own entry.
            if let Ok(pair) = self.pair(graph, decoder, image) {
                pairs.push(((preference, graph.quantized), pair));
            }
        }
        if pairs.is_empty() {
            // A decoder may have a single input of rank 4 too: the embedding.
            return Err(self.as_decoder(graph).unwrap_or(Rule::Alone));
        }
        Ok(pairs)
    }

    /// Why a graph is not the decoder of an encoder that it has a port in common with (the first one); `None` where there
    /// is no such encoder.
    fn as_decoder(&self, graph: &GraphFile) -> Option<Rule> {
        self.all.iter().filter(|e| e.path != graph.path).find_map(|encoder| {
            let image = image_input(&encoder.inputs)?;
            if !self.joined(encoder, graph) {
                return None;
            }
            self.pair(encoder, graph, image).err()
        })
    }

    fn joined(&self, encoder: &GraphFile, decoder: &GraphFile) -> bool {
        !self.wiring.join(encoder, decoder).is_empty()
    }

    /// Joins two graphs, or names the first rule that forbids it. Rules are worded from the decoder's side.
    fn pair(&self, encoder: &GraphFile, decoder: &GraphFile, image: &Port) -> Result<Pair, Rule> {
        let encoder_name = encoder.file_name();
        let apart = encoder.folder() != decoder.folder();
        if apart && [encoder, decoder].iter().any(|graph| self.crowded.contains(graph.folder())) {
            return Err(Rule::Folder(encoder_name));
        }
        if encoder.precision != decoder.precision {
            return Err(Rule::Precision(encoder_name));
        }
        if encoder.quantized != decoder.quantized {
            return Err(Rule::Quantization(encoder_name));
        }
        let mut names = HashSet::new();
        if let Some(twice) = decoder.inputs.iter().chain(&decoder.outputs).find(|p| !names.insert(&p.name)) {
            return Err(Rule::DuplicatePort(twice.name.clone()));
        }
        let joined = self.wiring.join(encoder, decoder);
        unify(joined.iter().map(|(output, input, _)| (*output, *input)))
            .map_err(|mismatch| Rule::Port { encoder: encoder_name.clone(), mismatch })?;

        let masks = outputs::masks(&decoder.outputs).ok_or(Rule::NoMasks)?;
        if let Some(op) = decoder.squashed.get(&masks.name) {
            return Err(Rule::Probabilities { port: masks.name.clone(), op: op.clone() });
        }
        let scores = outputs::scores(&decoder.outputs).ok_or(Rule::NoScores)?;
        let prompt = match (prompt_ports::detect(&encoder.inputs), prompt_ports::detect(&decoder.inputs)) {
            (Some(prompt), None) => {
                if let Some(port) = prompt.unfeedable() {
                    return Err(Rule::PromptType { encoder: encoder_name, port: port.clone() });
                }
                prompt.fixed().ok_or_else(|| Rule::OpenSlots(encoder_name.clone()))?
            }
            (Some(_), Some(_)) => return Err(Rule::TwoPrompts(encoder_name)),
            (None, Some(_)) => return Err(Rule::PromptInDecoder),
            (None, None) => return Err(Rule::NoPrompt(encoder_name)),
        };
        let unfed = |input: &&Port| !joined.iter().any(|(_, fed, _)| fed.name == input.name);
        if let Some(input) = decoder.inputs.iter().find(unfed) {
            return Err(Rule::Unfed(input.name.clone()));
        }
        let known = [&image.name, &prompt.coordinates, &prompt.labels];
        if let Some(further) = encoder.inputs.iter().find(|p| !known.contains(&&p.name)) {
            return Err(Rule::EncoderInput { encoder: encoder_name, input: further.name.clone() });
        }
        let reaching: HashSet<&str> =
            joined.iter().flat_map(|(p, _, _)| encoder.inputs_of(&p.name)).collect();
        for input in known {
            if !reaching.contains(input.as_str()) {
                return Err(Rule::Unreached { encoder: encoder_name, input: input.clone() });
            }
        }
        Ok(Pair {
            image: image.name.clone(),
            prompt,
            wires: joined.into_iter().map(wire).collect(),
            masks: masks.name.clone(),
            scores: scores.name.clone(),
            encoder: encoder.clone(),
            decoder: decoder.clone(),
        })
    }
}

fn wire((output, input, settled_by): (&Port, &Port, SettledBy)) -> Wire {
    Wire { input: input.name.clone(), output: output.name.clone(), settled_by }
}

/// Folders with several graphs, unreadable ones included. Such a folder is a publication of its own: half of one and half of
/// another would fit each other's ports and not each other's weights.
fn crowded_folders<'g>(graphs: &[&'g GraphFile], unreadable: &'g [Rejection]) -> HashSet<&'g Path> {
    let unreadable = unreadable.iter().map(|rejection| rejection.path.parent().unwrap_or(Path::new("")));
    let mut seen = HashSet::new();
    graphs
        .iter()
        .map(|graph| graph.folder())
        .chain(unreadable)
        .filter(|folder| !seen.insert(*folder))
        .collect()
}

/// The only input of rank 4 that holds no points.
fn image_input(inputs: &[Port]) -> Option<&Port> {
    only(inputs.iter().filter(|p| p.rank() == Some(4) && !prompt_ports::holds_coordinates(p)))
}
