use std::{collections::HashSet, path::Path};

use onnx_graph::{Port, PrecisionClass};

use crate::{
    Error, GraphFile, PromptPorts, Rejection, Result, Rule,
    outputs::{self, only},
    prompt_ports,
    unify::unify,
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
    /// Names of the ports that join the two, sorted.
    pub shared: Vec<String>,
    /// Name of the decoder's masks.
    pub masks: String,
    /// Name of the decoder's scores.
    pub scores: String,
}

/// Chooses the one best pair among `graphs`, whatever their order.
///
/// `precisions` lists the precisions that may be used, best first; among pairs of one precision an unquantised one is
/// better. No pair, and several equally good ones, are errors that name what was found. `folder` is only named in them,
/// and `unreadable` graphs only listed.
pub fn select(
    folder: &Path,
    graphs: &[GraphFile],
    unreadable: Vec<Rejection>,
    precisions: &[PrecisionClass],
) -> Result<Pair> {
    // The listing's order must not even show in the reason that is given.
    let mut graphs: Vec<&GraphFile> = graphs.iter().collect();
    graphs.sort_by(|a, b| a.path.cmp(&b.path));
    let crowded = crowded_folders(&graphs, &unreadable);
    let mut fitting: Vec<(Rank, Pair)> = Vec::new();
    let mut rejected = unreadable.clone();
    for &graph in &graphs {
        match judge(graph, &graphs, precisions, &crowded) {
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
    check_wiring(&pair)?;
    Ok(pair)
}

fn reject(graph: &GraphFile, rule: Rule) -> Rejection {
    let (inputs, outputs) = (graph.inputs.clone(), graph.outputs.clone());
    Rejection { path: graph.path.clone(), inputs, outputs, rule }
}

/// How good a pair is, least first: the place of its precision in the preference, then unquantised before quantised.
type Rank = (usize, bool);

/// All pairs with `graph` as encoder, or the first rule that keeps it out of every pair.
fn judge(
    graph: &GraphFile,
    all: &[&GraphFile],
    precisions: &[PrecisionClass],
    crowded: &HashSet<&Path>,
) -> Result<Vec<(Rank, Pair)>, Rule> {
    for ports in [&graph.inputs, &graph.outputs] {
        let mut names = HashSet::new();
        if let Some(twice) = ports.iter().find(|p| !names.insert(p.name.as_str())) {
            return Err(Rule::DuplicatePort(twice.name.clone()));
        }
    }
    let Some(preference) = precisions.iter().position(|p| *p == graph.precision) else {
        return Err(Rule::NotAskedFor(graph.precision));
    };
    let Some(image) = image_input(&graph.inputs) else {
        return Err(as_decoder(graph, all, crowded).unwrap_or(Rule::NoRole));
    };
    let mut pairs = Vec::new();
    for decoder in all.iter().filter(|d| d.path != graph.path && !shared_ports(graph, d).is_empty()) {
        // What is wrong with a decoder is said in its own entry.
        if let Ok(pair) = join(graph, decoder, image, crowded) {
            pairs.push(((preference, graph.quantized), pair));
        }
    }
    if pairs.is_empty() {
        // A decoder may have a single input of rank 4 too: the embedding.
        return Err(as_decoder(graph, all, crowded).unwrap_or(Rule::Alone));
    }
    Ok(pairs)
}

/// Why a graph is not the decoder of an encoder that it has a port in common with (the first one); `None` where there is
/// no such encoder.
fn as_decoder(graph: &GraphFile, all: &[&GraphFile], crowded: &HashSet<&Path>) -> Option<Rule> {
    all.iter().filter(|e| e.path != graph.path).find_map(|encoder| {
        let image = image_input(&encoder.inputs)?;
        if shared_ports(encoder, graph).is_empty() {
            return None;
        }
        join(encoder, graph, image, crowded).err()
    })
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

fn shared_ports<'g>(encoder: &'g GraphFile, decoder: &GraphFile) -> Vec<&'g Port> {
    let mut shared: Vec<&Port> =
        encoder.outputs.iter().filter(|o| decoder.input(&o.name).is_some()).collect();
    shared.sort_by(|a, b| a.name.cmp(&b.name));
    shared
}

/// Joins two graphs, or names the first rule that forbids it. Rules are worded from the decoder's side.
fn join(
    encoder: &GraphFile,
    decoder: &GraphFile,
    image: &Port,
    crowded: &HashSet<&Path>,
) -> Result<Pair, Rule> {
    let encoder_name = encoder.file_name();
    let apart = encoder.folder() != decoder.folder();
    if apart && [encoder, decoder].iter().any(|graph| crowded.contains(graph.folder())) {
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
    let shared = shared_ports(encoder, decoder);
    let couples = shared.iter().filter_map(|p| Some((*p, decoder.input(&p.name)?)));
    unify(couples).map_err(|mismatch| Rule::Port { encoder: encoder_name.clone(), mismatch })?;

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
    let unfed = |input: &&Port| encoder.output(&input.name).is_none();
    if let Some(input) = decoder.inputs.iter().find(unfed) {
        return Err(Rule::Unfed(input.name.clone()));
    }
    let known = [&image.name, &prompt.coordinates, &prompt.labels];
    if let Some(further) = encoder.inputs.iter().find(|p| !known.contains(&&p.name)) {
        return Err(Rule::EncoderInput { encoder: encoder_name, input: further.name.clone() });
    }
    let reaching: HashSet<&str> = shared.iter().flat_map(|p| encoder.inputs_of(&p.name)).collect();
    for input in known {
        if !reaching.contains(input.as_str()) {
            return Err(Rule::Unreached { encoder: encoder_name, input: input.clone() });
        }
    }
    Ok(Pair {
        image: image.name.clone(),
        prompt,
        shared: shared.iter().map(|p| p.name.clone()).collect(),
        masks: masks.name.clone(),
        scores: scores.name.clone(),
        encoder: encoder.clone(),
        decoder: decoder.clone(),
    })
}

/// A name is not enough: refuse where an unused output fits a joined port as well as the one of its name.
///
/// Releases from publisher version 0.58.0 on are like that (`image_embeddings` beside `pix_feat`), and joining them by
/// name gives wrong masks without an error.
fn check_wiring(pair: &Pair) -> Result<()> {
    let used = |port: &&Port| pair.shared.contains(&port.name);
    for consumed in pair.encoder.outputs.iter().filter(used) {
        // Sizes that are left open may turn out to be the same.
        let fits = |port: &&Port| !used(port) && unify([(*port, consumed)]).is_ok();
        if let Some(other) = pair.encoder.outputs.iter().find(fits) {
            return Err(Error::AmbiguousWiring {
                encoder: pair.encoder.path.clone(),
                consumed: consumed.name.clone(),
                other: other.name.clone(),
            });
        }
    }
    Ok(())
}
