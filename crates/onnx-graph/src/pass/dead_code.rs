use super::editor::Editor;

/// Unused weights go when the graph is put together again, whatever the passes.
pub(super) fn run(editor: &mut Editor<'_>) -> usize {
    let mut matched = 0;
    let mut waiting: Vec<_> = editor.ids().collect();
    // From the end: most nodes come after those that they need.
    while let Some(id) = waiting.pop() {
        let Some(node) = editor.node(id) else { continue };
        if node.output.iter().any(|output| editor.is_used(output)) {
            continue;
        }
        let inputs = node.input.clone();
        editor.remove(id);
        matched += 1;
        waiting.extend(inputs.iter().filter_map(|input| editor.producer(input)));
    }
    matched
}
