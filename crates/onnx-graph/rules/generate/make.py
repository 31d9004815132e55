"""Writes the rule files of this folder's parent. Needs the Python packages onnx and onnxruntime (the CPU build): the kernels of
the processor are asked of the library itself, versions of operators of the onnx package. Run it in this folder.
"""

import collections
import itertools
import json
import pathlib
import re

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

import kernels
import lists

NEWEST = 25  # of the documents and of the library consulted
OUT = pathlib.Path(__file__).parent.parent
KERNELS_PAGE = "https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md"

versions = collections.defaultdict(set)
functions = set()
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "" and schema.since_version <= NEWEST:
        versions[schema.name].add(schema.since_version)
for schema in onnx.defs.get_all_schemas():
    if schema.domain == "" and (schema.has_function or schema.has_context_dependent_function):
        functions.add(schema.name)


def words(text):
    return text.split()


def write(name, target, sources, rules, note="", newest=None, types=None):
    keys = ("title", "address", "version")
    head = {
        "target": target,
        "sources": [dict(zip(keys, source)) for source in sources],
        "note": note,
        "newest_opsets": newest or {},
        "types": types or {},
    }
    # One rule a line: differences can be read.
    body = ",\n".join("    " + json.dumps(rule) for rule in rules)
    text = json.dumps(head, indent=2)[:-2] + ',\n  "rules": [\n' + body + "\n  ]\n}\n"
    (OUT / f"{name}.json").write_text(text)
    print(name, len(rules), "rules", sum(len(r["operators"]) for r in rules), "operators")


def rule(operators, verdict="supported", reason="", domain="", opsets="", **when):
    entry = {"operators": words(operators) if isinstance(operators, str) else list(operators)}
    if domain:
        entry["domain"] = domain
    if opsets:
        entry["opsets"] = opsets
    entry["verdict"] = verdict
    if reason:
        entry["reason"] = reason
    if when:
        entry["when"] = when
    return entry


def end_of(operator, start, domain, known=versions, newest=NEWEST):
    """A kernel registered from `start` on serves that version of the operator alone: a later version needs a kernel of its own
    (ONNX Runtime's kernel registry, see https://github.com/microsoft/onnxruntime/issues/26065).
    """
    if domain:
        return None
    later = [v for v in known[operator] if v > start]
    return min(later) - 1 if later else newest


def merge(rules):
    """Rules that differ in nothing but their operators become one."""
    merged = {}
    for entry in rules:
        key = json.dumps({k: v for k, v in entry.items() if k != "operators"}, sort_keys=True)
        merged.setdefault(key, dict(entry, operators=[]))["operators"] += entry["operators"]
    for entry in merged.values():
        entry["operators"] = sorted(set(entry["operators"]))
    return list(merged.values())


def split(line):
    """Names, which begin with a letter, and what follows them."""
    names = list(itertools.takewhile(lambda word: word[0].isalpha(), line.split()))
    return names, " ".join(line.split()[len(names):])


def until(rules, listed):
    """Bounds rules of a list that ends at an operator set: an operator is on it as long as it does not change; one that came later is
    meant in its first version.
    """
    bounded = []
    for entry in rules:
        by_end = collections.defaultdict(list)
        for operator in entry["operators"]:
            later = sorted(v for v in versions[operator] if v > listed)
            if later and later[0] == min(versions[operator]):
                later = later[1:]
            by_end[later[0] - 1 if later else None].append(operator)
        for end, operators in by_end.items():
            part = dict(entry, operators=operators)
            if end and not entry.get("domain"):
                part = {"operators": operators, "opsets": f"1-{end}", **{k: v for k, v in entry.items() if k != "operators"}}
            bounded.append(part)
    return bounded


def kernel_rules(table, domain, provider):
    rules = []
    for line in table.strip().splitlines():
        names, rest = split(line)
        for name in names:
            operator, _, where = name.partition("@")
            slot = re.sub(r"(\d)", r" \1", where) or "input 0"
            known = versions[operator]
            covered = set()
            for part in rest.split(";"):
                opsets, _, types = part.strip().partition(":")
                start, _, end = opsets.partition("-")
                start = int(start)
                end = int(end) if end else end_of(operator, start, domain)
                when = {}
                if types.strip():
                    when["types"] = {slot: types.split()}
                if operator == "Cast":
                    outputs = "A12" if provider == "DirectML" else "A13 float4e2m1 Q8"
                    when["types"]["output 0"] = outputs.split()
                text = "" if domain else (f"{start}-" if end is None else f"{start}-{end}")
                rules.append(rule([operator], domain=domain, opsets=text, **when))
                covered |= {v for v in known if v >= start and (end is None or v <= end)}
            if not domain:
                for version in sorted(known - covered):
                    last = end_of(operator, version, domain)
                    if version < 7:
                        continue
                    reason = f"no {provider} kernel for version {version} of the operator"
                    rules.append(rule([operator], "unsupported", reason, opsets=f"{version}-{last}"))
    return merge(rules)


def expanded(table, provider):
    listed = {name.split("@")[0] for line in table.strip().splitlines() for name in split(line)[0]}
    names = sorted(functions - listed - {"Constant"})
    return [rule(names, "partial", f"no {provider} kernel: ONNX Runtime expands it into simpler operators, each with its own verdict")]


def provider(name, target, title, table, contrib, commit, note):
    constant = [rule("Constant", reason="")]
    rules = constant + kernel_rules(table, "", title) + expanded(table, title) + kernel_rules(contrib, "com.microsoft", title)
    groups = {k: v.split() for k, v in kernels.GROUPS.items()}
    source = (f"ONNX Runtime, operator kernels ({title})", KERNELS_PAGE, f"commit {commit}")
    write(name, target, [source], rules, note, {"": NEWEST, "com.microsoft": 1}, groups)


NOTE = "What has no kernel falls back to the processor. Constant nodes become weights when a model is loaded. Kernels for later versions of operators were added since (Pad: pull request 27774)."
provider("cuda_gpu", "CUDA/GPU", "CUDA", kernels.CUDA, kernels.CUDA_CONTRIB, "001d12d2", NOTE)
provider("dml_gpu", "DML/GPU", "DirectML", kernels.DML, kernels.DML_CONTRIB, "001d12d2", NOTE)


def combined(registered):
    """Registrations of one kernel, as one where any of the types of each parameter go together, else one by one."""
    parameters = sorted({name for one in registered for name in one})
    union = {name: set().union(*(one.get(name, set()) for one in registered)) for name in parameters}
    whole = set(itertools.product(*(sorted(union[name]) for name in parameters)))
    covered = set()
    for one in registered:
        covered |= set(itertools.product(*(sorted(one.get(name, set())) for name in parameters)))
    return [union] if covered == whole or not parameters else registered


def cpu():
    slots, known = {}, collections.defaultdict(set)
    for schema in state.get_all_operator_schema():
        if schema.domain == "":
            known[schema.name].add(schema.since_version)
        for what, ports in (("input", schema.inputs), ("output", schema.outputs)):
            for at, port in enumerate(ports):
                slots.setdefault((schema.domain, schema.name, schema.since_version), {}).setdefault(port.typeStr, []).append(f"{what} {at}")
    newest = max(max(of) for of in known.values())
    kernels_of = collections.defaultdict(list)
    names = {"float": "float32", "double": "float64"}
    for kernel in state.get_all_opkernel_def():
        if kernel.domain not in ("", "com.microsoft"):
            continue
        parameters = {}
        for parameter, types in kernel.type_constraints.items():
            plain = [re.fullmatch(r"tensor\((\w+)\)", t) for t in types]
            parameters[parameter] = {names.get(m[1], m[1]) for m in plain if m} | ({"?"} if not all(plain) else set())
        kernels_of[kernel.domain, kernel.op_name, kernel.version_range].append(parameters)
    rules, covered = [], collections.defaultdict(set)
    for (domain, operator, (start, end)), registered in sorted(kernels_of.items(), key=lambda entry: entry[0]):
        if end > 10_000:
            end = end_of(operator, start, domain, known, newest)
        of = slots.get((domain, operator, start)) or {}
        if not of:
            # The kernel's range may begin between versions.
            before = [v for (d, n, v) in slots if (d, n) == (domain, operator) and v <= start]
            of = slots.get((domain, operator, max(before)), {}) if before else {}
        opsets = "" if domain else f"{start}-{end}"
        for parameters in combined(registered):
            types = {}
            for parameter, allowed in sorted(parameters.items()):
                # What sequences and optionals hold is not looked at; a parameter that the schema does not have is a port's own type.
                if "?" not in allowed:
                    # Ports of one parameter have one type: the first is enough, and inputs come first.
                    for slot in of.get(parameter, [])[:1]:
                        types[slot] = sorted(allowed)
            when = {"types": types} if types else {}
            if operator in ("GRU", "LSTM", "RNN"):
                when["attributes"] = {"layout": [None, 0]}
            rules.append(rule([operator], domain=domain, opsets=opsets, **when))
            # https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/optimizer/insert_cast_transformer.cc
            half = {slot: ["float16"] if "float32" in allowed and "float16" not in allowed else allowed for slot, allowed in types.items()}
            if half != types:
                reason = "no kernel for float16: ONNX Runtime casts to float32 and back"
                rules.append(rule([operator], "partial", reason, domain, opsets, **dict(when, types=half)))
        if not domain:
            covered[operator] |= {v for v in known[operator] if start <= v <= end}
    rules.append(rule("Constant"))
    expands = "no kernel of its own: ONNX Runtime expands it into simpler operators, each with its own verdict"
    # What they expand into has no kernel in turn, seen by running.
    rules.append(rule("SwiGLU", "unsupported", "no kernel of its own, nor for the Swish that it expands into"))
    rules.append(rule("Swish", "unsupported", "no kernel of its own, and expanded in operator set 24 alone", opsets="25-"))
    rules.append(rule("Bernoulli", "unsupported", "no kernel of its own, nor for the RandomUniformLike that it expands into", opsets="22-"))
    cast = next(r for r in reversed(rules) if r["operators"] == ["Cast"] and r["verdict"] == "supported")["when"]["types"]
    rules.append(rule("CastLike", "partial", expands, types=cast))
    rest = sorted(functions - set(covered) - {"Constant", "SwiGLU", "CastLike"})
    rules.append(rule(rest, "partial", expands))
    rules.append(rule("Range", "partial", "no kernel for halves, but an expansion into simpler operators", opsets="27-", types={"input 0": ["float16", "bfloat16"]}))
    for operator in sorted(covered):
        for version in sorted(known[operator] - covered[operator]):
            if version >= 7:
                opsets = f"{version}-{end_of(operator, version, '', known, newest)}"
                if operator in functions:
                    rules.append(rule([operator], "partial", f"version {version} has {expands}", opsets=opsets))
                else:
                    rules.append(rule([operator], "unsupported", f"no kernel for version {version} of the operator", opsets=opsets))
    source = ("ONNX Runtime, processor kernels as the library itself lists them", KERNELS_PAGE, onnxruntime.__version__)
    sets, used = {}, collections.Counter(json.dumps(t) for r in rules for t in r.get("when", {}).get("types", {}).values())
    for at, (text, count) in enumerate(used.most_common(24)):
        if count > 3 and len(json.loads(text)) > 2:
            sets[f"set{at}"] = json.loads(text)
    back = {json.dumps(v): [k] for k, v in sets.items()}
    for entry in rules:
        for slot, allowed in entry.get("when", {}).get("types", {}).items():
            entry["when"]["types"][slot] = back.get(json.dumps(allowed), allowed)
    write("cpu", "CPU/CPU", [source], merge(rules), "Constant nodes become weights when a model is loaded.", {"": newest, "com.microsoft": 1}, sets)


cpu()


def tensorrt():
    groups = {"F": "float32 float16 bfloat16", "I": "int32 int64", "B": "bool", "H": "float32 float16"}
    types = {k: v.split() for k, v in groups.items()}
    rules = []
    by_letters = collections.defaultdict(list)
    for line in lists.TENSORRT.strip().splitlines():
        letters, operators = line.split(": ")
        by_letters[letters] += operators.split()
    for letters, operators in by_letters.items():
        rules.append(rule(sorted(operators), types={"input 0": list(letters)}))
    reduce = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    fi = {"input 0": ["F", "I"]}
    ones = [None, [1, 1], [1, 1, 1]]
    rules += [
        rule(reduce, types=fi, constant=[1]),
        rule("AveragePool LpPool", types={"input 0": ["F"]}, ranks={"input 0": [4, 5]}, attributes={"dilations": ones}),
        rule("MaxPool", types={"input 0": ["F"]}, ranks={"input 0": [4, 5]}, attributes={"dilations": ones}, outputs_at_most=1),
        rule("Cast CastLike", types={"input 0": ["F", "I", "B", "uint8"], "output 0": ["F", "I", "B", "uint8"]}),
        rule("Constant", attributes={"sparse_value": [None], "value_string": [None], "value_strings": [None]}),
        rule("ConstantOfShape", types={"output 0": ["F", "I", "B"]}),
        rule("CumSum", types={"input 0": ["F"]}, constant=[1]),
        rule("GridSample", types={"input 0": ["H"]}, ranks={"input 0": [4]}),
        rule("LayerNormalization", types={"input 0": ["F"]}, outputs_at_most=1),
        rule("Squeeze Unsqueeze", types={"input 0": ["F", "I", "B"]}, constant=[1]),
        rule("Where", types={"input 1": ["F", "I", "B"]}),
        rule("ScatterND", types=fi, attributes={"reduction": [None, "none"]}),
        rule("Resize", types={"input 0": ["F"]}, attributes={
            "coordinate_transformation_mode": [None, "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "asymmetric", "align_corners"],
            "mode": [None, "nearest", "linear"],
            "nearest_mode": [None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"],
            "keep_aspect_ratio_policy": [None, "stretch"], "antialias": [None, 0]}),
        rule("QuantizeLinear", types={"input 0": ["F"]}, without=[2]),
        rule("DequantizeLinear", types={"input 0": ["int8", "int4", "float8e4m3fn"]}, without=[2]),
        rule("QuantizeLinear DequantizeLinear", "partial", "the zero point has to be zero"),
        rule("Attention", "partial", "four dims only; no past, no presents, no softcap", types={"input 0": ["F"]}, ranks={"input 0": [4]}, without=[4, 5, 6], outputs_at_most=1),
        rule("If", "partial", "both branches have to give results of the same rank, by different names"),
        rule("Loop", "partial", "the length of scan outputs and the shapes carried along have to be fixed"),
        rule("TopK", "partial", "k has to be below 3840", types=fi, attributes={"sorted": [None, 1]}),
        rule("OneHot", types={"input 2": ["F", "I", "B"]}, constant=[1]),
        rule("EyeLike", types={"input 0": ["F", "I", "B"]}, static_shapes=True),
        rule("GRU LSTM RNN", "partial", "both directions need the same activations; no input_forget, no layout", types={"input 0": ["F"]}),
        rule("RotaryEmbedding TensorScatter STFT DeformConv Dropout Hardmax", "partial", "in some forms only, see the source"),
        rule("RandomNormal RandomNormalLike RandomUniform RandomUniformLike", "partial", "the seed is ignored"),
        rule(lists.TENSORRT_NOT, "unsupported", "listed as not supported"),
        rule(sorted({o for r in rules for o in r["operators"]}), "partial", "float64 is computed in float32", types={"input 0": ["float64"]}),
    ]
    source = ("ONNX-TensorRT, supported operators", "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md", "TensorRT 10.15")
    note = "TensorRT for RTX reads ONNX with the same parser; no list of its own is public."
    write("nv_tensorrt_gpu", "NvTensorRT/GPU", [source], merge(rules), note, {"": 24}, types)


tensorrt()


def qnn(name, target, npu):
    fixed = {"static_shapes": True}
    operators = sorted(set(words(lists.QNN)) - {"LpNormalization"})
    rules = [rule(operators, **fixed), rule(lists.QNN_CONTRIB, domain="com.microsoft", **fixed)]
    rules += [rule("Gather", "partial", "indices must not be negative", **fixed)]
    rules += [rule("LpNormalization", attributes={"p": [None, 2]}, **fixed)]
    if npu:
        quantised = ["uint8", "uint16"]
        rules += [rule("MatMul", types={"input 0": quantised, "input 1": quantised}, **fixed)]
        rules += [rule("MatMul", "partial", "the list names quantised inputs only; floats run in half precision by the provider's option", types={"input 0": ["float32", "float16"]}, **fixed)]
        rules += [rule("RotaryEmbedding", **fixed), rule("RotaryEmbedding", domain="com.microsoft", **fixed)]
    else:
        rules += [rule("MatMul", **fixed)]
        rules += [rule("RotaryEmbedding", "unsupported", "on the HTP backend only"), rule("RotaryEmbedding", "unsupported", "on the HTP backend only", domain="com.microsoft")]
    fused = "ConvInteger DynamicQuantizeLinear MatMulInteger"
    rules += [rule(fused, "partial", "only where it can be fused into a quantised convolution or product", **fixed)]
    rules += [rule("Loop Scan", "unsupported", "no control flow")]
    source = ("QNN Execution Provider, supported ONNX operators", "https://github.com/onnxruntime/onnxruntime-qnn/tree/main/docs/execution_providers", "commit 0131740f")
    note = "The list is the same for all backends and names no element types: those vary by operator and backend. "
    note += "Float32 runs in half precision by default." if npu else "Nothing in it was checked for the GPU backend in particular."
    # Control flow is not on the list, though a release note speaks of If.
    write(name, target, [source], rules, note)


qnn("qnn_npu", "QNN/NPU", True)
qnn("qnn_gpu", "QNN/GPU", False)

OPENVINO_SOURCE = ("OpenVINO Execution Provider, support coverage", "https://onnxruntime.ai/docs/execution-providers/OpenVINO-ExecutionProvider.html", "commit 00844588")
both = rule(lists.OPENVINO)
none = rule(lists.OPENVINO_NOT, "unsupported", "listed as not supported")
write("openvino_cpu", "OpenVINO/CPU", [OPENVINO_SOURCE], [both, rule(lists.OPENVINO_CPU_ONLY), none],
      "The list names no element types and no operator sets. It lags behind: LayerNormalization and Gelu are not on it.")
write("openvino_gpu", "OpenVINO/GPU", [OPENVINO_SOURCE], [both, rule(lists.OPENVINO_CPU_ONLY, "unsupported", "listed for processors, not for GPUs"), none],
      "The list names no element types and no operator sets. It lags behind: LayerNormalization and Gelu are not on it.")
write("openvino_npu", "OpenVINO/NPU", [OPENVINO_SOURCE], [],
      "No public list of operators for the NPU: the page lists models, and says that what is not supported runs on the processor. Everything is unknown.")


def migraphx():
    floats = words("float16 float32 float64 float8e4m3fnuz")
    ints = words("int8 int16 int32 int64 uint8 uint16 uint32 uint64")
    types = {"floats": floats, "numbers": floats + ints, "any": ["bool"] + floats + ints}
    fixed = {"static_shapes": True}
    rules = [rule(operators, types={"input 0": ["bool"] if group == "bool" else [group]}) for group, operators in lists.MIGRAPHX.items()]
    rules[[i for i, r in enumerate(rules) if "Constant" in r["operators"]][0]]["operators"].remove("Constant")
    for entry in rules:
        if "Where" in entry["operators"]:
            entry["operators"].remove("Where")
    reduce = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    f = {"input 0": ["floats"]}
    wide = words("float16 float32 float64 uint32 uint64 int32 int64")
    rules += [
        rule("Constant"),
        rule("Where", types={"input 1": ["any"]}),
        rule("Cast CastLike", types={"output 0": words("bool float16 float32 float64") + ints}, attributes={"saturate": [None, 1]}),
        rule("ConstantOfShape", constant=[0]),
        rule("ConvInteger", types={"input 0": ["int8"]}),
        rule("ConvTranspose", types=f, attributes={"auto_pad": [None, "NOTSET"], "output_padding": [None, [0], [0, 0], [0, 0, 0]]}),
        rule("ConvTranspose", "partial", "output_padding is computed differently", types=f, attributes={"auto_pad": [None, "NOTSET"]}),
        rule("CumSum", types={"input 0": wide + ["float8e4m3fnuz"]}, **fixed),
        rule("DequantizeLinear", types={"input 0": ["numbers"]}),
        rule("Dropout"),
        rule("DynamicQuantizeLinear", "partial", "to uint8 only", **fixed),
        rule("Einsum", "partial", "one diagonal of an input at most, none of a batch that does not lead"),
        rule("Expand", types={"input 0": ["any"]}, **fixed),
        rule("Gemm MatMul PRelu", types={"input 0": wide + ["float8e4m3fnuz"]}),
        rule("GridSample", ranks={"input 0": [4]}, types={"input 0": wide}),
        rule("GroupNormalization LayerNormalization", types=f, attributes={"stash_type": [None, 1]}),
        rule("GRU LSTM RNN", "partial", "not with every activation", types=f),
        rule("Identity", types={"input 0": ["any"]}),
        rule("If", "partial", "no sequences"),
        rule("Loop Scan", "partial", "no sequences; the number of rounds is bounded"),
        rule("LpPool", "partial", "not on every GPU", types=f),
        rule("MatMulInteger", types={"input 0": ["uint8", "int8"]}, **fixed),
        rule("MaxPool", types={"input 0": words("float32 float16 float8e4m3fnuz int8")}, attributes={"storage_order": [None, 0], "dilations": [None, [1], [1, 1], [1, 1, 1]]}, outputs_at_most=1),
        rule("MaxPool", "partial", "dilations in part", types={"input 0": words("float32 float16 float8e4m3fnuz int8")}, attributes={"storage_order": [None, 0]}, outputs_at_most=1),
        rule("Mod", types={"input 0": floats + words("int16 int64 uint8 uint16 uint32 uint64")}),
        rule("Mod", "partial", "int8 and int32 have an open fault on GPUs", types={"input 0": words("int8 int32")}),
        rule("Mul", types={"input 0": floats + words("int16 int64 uint8 uint16 uint32 uint64")}),
        rule("Neg", types={"input 0": floats + words("int8 int32 int64")}),
        rule("NonMaxSuppression NonZero", "partial", "the output has a fixed size unless asked otherwise", types=f),
        rule("OneHot", **fixed),
        rule("Pad", types={"input 0": ["any"]}, constant=[1], attributes={"mode": [None, "constant", "reflect"]}),
        rule("QuantizeLinear", types={"input 0": words("float8e4m3fnuz float16 float32 int32")}, attributes={"saturate": [None, 1]}),
        rule("QLinearConv", types={"input 0": ["uint8", "int8"]}),
        rule("QLinearMatMul", "partial", "scalar scales only", types={"input 0": ["uint8", "int8"]}),
        rule("RandomNormal RandomNormalLike RandomUniform RandomUniformLike"),
        rule("Range", constant=[0, 1, 2]),
        rule(reduce, types={"input 0": wide}, constant=[1]),
        rule("Relu", types={"input 0": words("float16 float32 float64 int8 int16 int32 int64")}),
        rule("Reshape", types={"input 0": words("float32 float16 int32 int64 float8e4m3fnuz int8 bool")}, attributes={"allowzero": [None, 0]}, **fixed),
        rule("Resize", types={"input 0": ["numbers"]}, constant=[2, 3], attributes={
            "mode": [None, "nearest", "linear"], "antialias": [None, 0], "exclude_outside": [None, 0],
            "coordinate_transformation_mode": [None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"],
            "keep_aspect_ratio_policy": [None, "stretch"], "extrapolation_value": [None]}),
        rule("ReverseSequence", types={"input 0": ["any"]}, constant=[1]),
        rule("Slice", types={"input 0": ["any"]}, constant=[1, 2, 3, 4]),
        rule("Split", types={"input 0": ["any"]}, **fixed),
        rule("Squeeze Unsqueeze", types={"input 0": ["any"]}, constant=[1]),
        rule("Tile", types={"input 0": ["any"]}, **fixed),
        rule("TopK", "partial", "results are always sorted", types={"input 0": ["numbers"]}, constant=[1]),
        rule("Trilu", types={"input 0": ["any"]}, constant=[1]),
        rule("Unique", attributes={"axis": [0]}),
        rule(lists.MIGRAPHX_NOT, "unsupported", "listed as not supported"),
        rule("BiasGelu FastGelu", domain="com.microsoft", types={"input 0": ["float16", "float32"]}),
        rule("QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid",
             domain="com.microsoft"),
    ]
    source = ("AMD MIGraphX, supported ONNX operators", "https://rocm.docs.amd.com/projects/AMDMIGraphX/en/latest/dev/onnx_operators.html", "commit 0a3b3851, up to operator set 19")
    note = "The list ends at operator set 19; an operator counts as on it for as long as later sets leave it as it was."
    write("migraphx_gpu", "MIGraphX/GPU", [source], until(rules, 19), note, {"": NEWEST}, types)


migraphx()


def vitisai():
    words_of = {"b": "BF16", "w": "A16W8", "a": "A8W8", "x": "XINT8"}
    by_letters = collections.defaultdict(list)
    for line in lists.VITISAI.strip().splitlines():
        letters, operators = line.split(": ")
        by_letters[letters] += operators.split()
    rules = []
    for letters, operators in by_letters.items():
        forms = ", ".join(words_of[letter] for letter in letters)
        rules.append(rule(operators, "partial", f"after quantisation to {forms}; some configurations may not be covered"))
    source = ("Ryzen AI documentation, supported operators", "https://github.com/amd/ryzen-ai-documentation/blob/main/docs/ops_support.rst", "Ryzen AI 1.5.0")
    note = "The list is by quantisation, which is done before the model is run; nothing on it is supported as float32, so nothing is more than partial."
    write("vitisai_npu", "VitisAI/NPU", [source], rules, note)


vitisai()


def coreml():
    plain = "Add ArgMax BatchNormalization Cast Clip Concat Div Flatten LeakyRelu LRN Mul Reciprocal ReduceSum Relu Reshape Resize Sigmoid Squeeze Sqrt Sub Tanh Transpose"
    d = {"largest_dim": 16384}
    four = {"ranks": {"input 0": [4]}}
    rules = [
        rule(plain, **d),
        rule("AveragePool GlobalAveragePool GlobalMaxPool MaxPool", **four, **d),
        rule("Conv", ranks={"input 0": [3, 4]}, constant=[1, 2], **d),
        rule("DepthToSpace", attributes={"mode": [None, "DCR"]}, **d),
        rule("Gather", ranks={"input 1": [1, 2, 3, 4, 5]}, **d),
        rule("Gemm MatMul", constant=[1], **d),
        rule("Pad", "partial", "of the last two dims only", constant=[1, 2, 3], attributes={"mode": [None, "constant"]}, **d),
        rule("Pow", types={"inputs": ["float32"]}, **d),
        rule("PRelu", "partial", "with a slope for each channel, or one", constant=[1], **d),
        rule("Shape", attributes={"start": [None, 0], "end": [None]}, **d),
        rule("Slice", constant=[1, 2, 3, 4], **d),
    ]
    sources = [
        ("CoreML Execution Provider, supported operators", "https://onnxruntime.ai/docs/execution-providers/CoreML-ExecutionProvider.html", "commit d910f96f (NeuralNetwork format)"),
        ("SAM 2 on Core ML: dims beyond 16384 are refused", "https://github.com/pagarcia/sam2-onnx-cpp/issues/3", "issue 3"),
    ]
    write("coreml", "CoreML", sources, rules, "The list is the older NeuralNetwork format's; the newer MLProgram format has more operators, which are unknown here.")


coreml()


def xnnpack():
    four = {"input 0": [4]}
    float32 = {"input 0": ["float32"]}
    rules = [
        rule("AveragePool MaxPool", ranks=four),
        rule("Conv ConvTranspose", ranks=four, constant=[1, 2]),
        rule("QLinearConv", ranks=four, constant=[1, 2, 3, 4, 5, 6, 7, 8]),
        rule("Softmax", opsets="1-12"),
        rule("Softmax", opsets="13-", last_axis=True),
        rule("Resize", ranks={"input 0": [2, 4]}, attributes={"mode": ["linear"]}),
        rule("Gemm MatMul", ranks={"input 0": [2], "input 1": [2]}),
        rule("QLinearAveragePool", domain="com.microsoft", ranks=four, constant=[1, 2, 3, 4]),
        rule("QLinearConvTranspose", domain="com.microsoft", constant=[1, 2, 3, 4, 5, 6, 7, 8]),
        rule("QLinearSoftmax", domain="com.microsoft", constant=[1, 2, 3, 4]),
    ]
    source = ("XNNPACK Execution Provider, supported operators", "https://onnxruntime.ai/docs/execution-providers/Xnnpack-ExecutionProvider.html", "commit ff6696f0")
    write("xnnpack", "XNNPACK", [source], rules, "What is not on the list runs on ONNX Runtime's own processor kernels.")


xnnpack()


def rten():
    types = {"computed": words("float32 int32 int64 int8 uint8 bool string")}
    values = {"inputs": ["computed"], "outputs": ["computed"]}
    special = {
        "Softmax LogSoftmax": {"opsets": "13-"},
        "Resize": {"attributes": {"mode": [None, "nearest", "linear"], "nearest_mode": {"not": ["round_prefer_ceil"]}}},
        "Cast": {"attributes": {"to": {"not": [2, 3, 9]}}},
        "AveragePool MaxPool": {"attributes": {"auto_pad": {"not": ["SAME_LOWER"]}}},
        " ".join(o for o in words(lists.RTEN) if o.startswith("Reduce")): {"attributes": {"noop_with_empty_axes": [None, 0]}},
    }
    given = {"not": [None]}
    # It has no defaults for these attributes.
    convolution = {"strides": given, "dilations": given}
    taken = {o for operators in special for o in operators.split()} | {"Conv", "ConvTranspose"}
    rules = [rule(sorted(set(words(lists.RTEN)) - taken), types=values)]
    for operators, when in special.items():
        opsets = when.pop("opsets", "")
        rules.append(rule(operators, opsets=opsets, types=values, **when))
    rules += [
        rule("Conv ConvTranspose", types=values, attributes={**convolution, "auto_pad": [None, "NOTSET"], "pads": given}),
        rule("Conv ConvTranspose", types=values, attributes={**convolution, "auto_pad": ["SAME_UPPER"]}),
    ]
    rules.append(rule("Softmax LogSoftmax Hardmax", "unsupported", "before operator set 13 it takes the dims from the axis on together, rten one", opsets="1-12"))
    rules.append(rule(lists.RTEN_CONTRIB, domain="com.microsoft", types=values))
    for operators, reason in lists.RTEN_PARTIAL.items():
        rules.append(rule(operators, "partial", reason))
    sources = [("rten, operators whose results were compared with ONNX Runtime 1.32 by running both", "https://docs.rs/rten", "0.27")]
    note = "64-bit integers are computed in 32 bits: a constant beyond them must not be computed with (Slice may have it). Half precision is widened before a model is handed over."
    write("rten", "rten", sources, rules, note, {}, types)


rten()
