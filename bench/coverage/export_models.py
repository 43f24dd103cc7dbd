#!/usr/bin/env python3
"""Exports models of torch, torchvision and transformers, with random weights, as users export them.

    bench/coverage/export_models.py FOLDER [NAME ...] [--list] [--seed N]

Writes FOLDER/NAME.onnx for every name of the list below, or for those given. What varies: the exporter (torchscript at
opset 17, or that of torch.export, `dynamo`, at its newest opset), fixed or dynamic extents, elements (fp32, fp16, and
int8 by ONNX Runtime's quantizer in QDQ form). Models have the architecture of the published ones with few layers and
narrow ones, where the library lets one say so; the graph of a layer is the same. Needs torch, torchvision, transformers, onnx,
onnxscript, onnxruntime. Prints a line per model: its name, nodes, or what the exporter said."""
import argparse
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import traceback
import warnings

os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import onnx
import torch
import torchvision
import transformers
from torch import nn

BATCH, LENGTH = 2, 16


class Wrapped(nn.Module):
    """Calls a model with inputs by name, in order, and returns the tensors of its output that are named."""

    def __init__(self, model, names, outputs, **fixed):
        super().__init__()
        self.model, self.names, self.outputs, self.fixed = model, names, outputs, fixed

    def forward(self, *inputs):
        result = self.model(**dict(zip(self.names, inputs)), **self.fixed)
        return tuple(getattr(result, name) for name in self.outputs)


class Cached(nn.Module):
    """A decoder with its keys and values of the past as inputs and outputs, layer by layer."""

    def __init__(self, model, layers):
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, ids, mask, *past):
        cache = transformers.DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        present = []
        for layer in result.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (result.logits, *present)


def ids(vocabulary=1000, length=LENGTH):
    return torch.randint(0, vocabulary, (BATCH, length))


def mask(length=LENGTH):
    return torch.ones(BATCH, length, dtype=torch.int64)


TEXT = {"ids": {0: "batch", 1: "sequence"}, "mask": {0: "batch", 1: "sequence"}}


def text_model(cls, config, outputs=("last_hidden_state",), **fixed):
    config._attn_implementation = fixed.pop("attention", "eager")
    model = cls(config)
    return Wrapped(model, ["input_ids", "attention_mask"], outputs, **fixed), (ids(config.vocab_size), mask()), dict(TEXT)


T = transformers
NARROW = dict(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)


def bert():
    return text_model(T.BertModel, T.BertConfig(**NARROW), return_dict=True)


def bert_sdpa():
    return text_model(T.BertModel, T.BertConfig(**NARROW), attention="sdpa")


def distilbert():
    return text_model(T.DistilBertModel, T.DistilBertConfig(vocab_size=1000, dim=128, n_layers=2, n_heads=4, hidden_dim=256))


def roberta():
    return text_model(T.RobertaModel, T.RobertaConfig(**NARROW, max_position_embeddings=130))


def gpt2_config():
    return T.GPT2Config(vocab_size=1000, n_embd=128, n_layer=2, n_head=4, n_positions=256)


def gpt2():
    return text_model(T.GPT2LMHeadModel, gpt2_config(), ("logits",), use_cache=False)


def cached(cls, config, layers, heads, width):
    config._attn_implementation = "eager"
    past_length = 8
    past = [torch.randn(BATCH, heads, past_length, width) for _ in range(2 * layers)]
    names = {"ids": {0: "batch", 1: "sequence"}, "mask": {0: "batch", 1: "total"}}
    for index in range(2 * layers):
        names[f"past_{index}"] = {0: "batch", 2: "past"}
    return Cached(cls(config), layers), (ids(config.vocab_size, 4), mask(past_length + 4), *past), names


def gpt2_cache():
    return cached(T.GPT2LMHeadModel, gpt2_config(), 2, 4, 32)


def llama_config():
    return T.LlamaConfig(**NARROW, num_key_value_heads=2, max_position_embeddings=256)


def llama():
    return text_model(T.LlamaForCausalLM, llama_config(), ("logits",), use_cache=False)


def llama_cache():
    return cached(T.LlamaForCausalLM, llama_config(), 2, 2, 32)


def mistral():
    return text_model(T.MistralForCausalLM, T.MistralConfig(**NARROW, num_key_value_heads=2, sliding_window=None), ("logits",),
                      use_cache=False)


def gemma():
    return text_model(T.GemmaForCausalLM, T.GemmaConfig(**NARROW, num_key_value_heads=1, head_dim=32), ("logits",), use_cache=False)


def phi():
    return text_model(T.PhiForCausalLM, T.PhiConfig(**NARROW), ("logits",), use_cache=False)


def t5():
    config = T.T5Config(vocab_size=1000, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4)
    return text_model(T.T5EncoderModel, config)


def whisper():
    config = T.WhisperConfig(vocab_size=1000, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, max_source_positions=100, pad_token_id=0,
                             bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    config._attn_implementation = "eager"
    encoder = T.WhisperModel(config).get_encoder()
    return (Wrapped(encoder, ["input_features"], ("last_hidden_state",)), (torch.randn(BATCH, 80, 200),),
            {"features": {0: "batch"}})


def image(side=224, batch=1):
    return (torch.randn(batch, 3, side, side),), {"image": {0: "batch"}}


def vit():
    config = T.ViTConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)
    config._attn_implementation = "eager"
    return (Wrapped(T.ViTModel(config), ["pixel_values"], ("last_hidden_state",)), *image())


def swin():
    config = T.SwinConfig(embed_dim=32, depths=[2, 2], num_heads=[2, 4])
    return (Wrapped(T.SwinModel(config), ["pixel_values"], ("last_hidden_state",)), *image())


def swin_t():
    return (torchvision.models.swin_t(), *image())


def clip():
    config = T.CLIPVisionConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)
    config._attn_implementation = "eager"
    return (Wrapped(T.CLIPVisionModel(config), ["pixel_values"], ("last_hidden_state",)), *image())


def segformer():
    config = T.SegformerConfig(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 80, 128], decoder_hidden_size=64)
    return (Wrapped(T.SegformerForSemanticSegmentation(config), ["pixel_values"], ("logits",)), *image(128))


def wav2vec2():
    config = T.Wav2Vec2Config(**NARROW, conv_dim=[32] * 7, num_conv_pos_embeddings=16)
    config._attn_implementation = "eager"
    return (Wrapped(T.Wav2Vec2Model(config), ["input_values"], ("last_hidden_state",)), (torch.randn(BATCH, 4000),),
            {"samples": {0: "batch", 1: "samples"}})


def conformer():
    config = T.Wav2Vec2ConformerConfig(**NARROW, conv_dim=[32] * 7, num_conv_pos_embeddings=16)
    return (Wrapped(T.Wav2Vec2ConformerModel(config), ["input_values"], ("last_hidden_state",)),
            (torch.randn(BATCH, 4000),), {"samples": {0: "batch", 1: "samples"}})


def resnet():
    return (torchvision.models.resnet18(), *image())


def efficientnet():
    return (torchvision.models.efficientnet_b0(), *image())


def efficientnet_v2():
    return (torchvision.models.efficientnet_v2_s(), *image())


def mobilenet_v3():
    return (torchvision.models.mobilenet_v3_small(), *image())


def convnext():
    return (torchvision.models.convnext_tiny(), *image())


class FirstOf(nn.Module):
    def __init__(self, model, key):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, image):
        return self.model(image)[self.key]


def deeplab():
    model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return (FirstOf(model, "out"), *image(128))


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(1000, 64), cell(64, 96, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(192, 10)

    def forward(self, ids):
        features, _ = self.cell(self.embedding(ids))
        return self.head(torch.relu(features))


def lstm():
    return Recurrent(nn.LSTM), (ids(),), {"ids": {0: "batch", 1: "sequence"}}


def gru():
    return Recurrent(nn.GRU), (ids(),), {"ids": {0: "batch", 1: "sequence"}}


class UNet(nn.Module):
    """Ronneberger et al. 2015, two levels, bilinear upsampling and skip connections."""

    def __init__(self, up):
        super().__init__()

        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1),
                                 nn.GroupNorm(8, b), nn.SiLU())

        self.first, self.second, self.bottom = block(3, 32), block(32, 64), block(64, 128)
        self.up2, self.up1 = up(128, 64), up(64, 32)
        self.third, self.fourth, self.head = block(128, 64), block(64, 32), nn.Conv2d(32, 2, 1)

    def forward(self, image):
        first = self.first(image)
        second = self.second(nn.functional.max_pool2d(first, 2))
        x = self.bottom(nn.functional.max_pool2d(second, 2))
        x = self.third(torch.cat([self.up2(x), second], 1))
        return self.head(self.fourth(torch.cat([self.up1(x), first], 1)))


def unet():
    return (UNet(lambda a, b: nn.ConvTranspose2d(a, b, 2, stride=2)), *image(64))


def unet_bilinear():
    def up(a, b):
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(a, b, 1))

    return (UNet(up), *image(64))


# name -> (model, exporter, dynamic, elements)
MODELS = {}
for name in ["bert", "distilbert", "roberta", "gpt2", "llama", "mistral", "gemma", "phi", "t5", "wav2vec2", "conformer"]:
    MODELS[name + "_dynamic"] = (name, "torchscript", True, "fp32")
for name in ["bert", "llama", "whisper", "vit", "swin", "swin_t", "clip", "segformer", "resnet", "efficientnet", "efficientnet_v2",
             "mobilenet_v3", "convnext", "deeplab", "lstm", "gru", "unet", "unet_bilinear"]:
    MODELS[name] = (name, "torchscript", False, "fp32")
for name in ["bert", "bert_sdpa", "gpt2", "llama", "vit", "resnet", "t5", "whisper", "swin_t", "unet", "gpt2_cache", "llama_cache"]:
    MODELS[name + "_dynamo"] = (name, "dynamo", False, "fp32")
for name in ["bert", "llama", "gpt2"]:
    MODELS[name + "_dynamo_dynamic"] = (name, "dynamo", True, "fp32")
for name in ["gpt2_cache", "llama_cache"]:
    MODELS[name + "_dynamic"] = (name, "torchscript", True, "fp32")
for name in ["lstm", "gru", "resnet", "vit"]:
    MODELS[name + "_dynamic"] = (name, "torchscript", True, "fp32")
for name in ["bert", "resnet", "llama", "unet", "vit"]:
    MODELS[name + "_fp16"] = (name, "torchscript", False, "fp16")
for name in ["bert", "resnet", "vit"]:
    MODELS[name + "_int8"] = (name, "torchscript", False, "int8")


def export(name, path, seed):
    builder, exporter, dynamic, elements = MODELS[name]
    torch.manual_seed(seed)
    model, inputs, axes = globals()[builder]()
    model = model.eval()
    if elements == "fp16":
        model = model.half()
        inputs = tuple(x.half() if x.is_floating_point() else x for x in inputs)
    names = list(axes)
    with torch.no_grad():
        if exporter == "torchscript":
            torch.onnx.export(model, inputs, str(path), opset_version=17, input_names=names, dynamo=False,
                              dynamic_axes=axes if dynamic else None)
        else:
            shapes = None
            if dynamic:
                made = {}
                shapes = tuple({axis: made.setdefault(symbol, torch.export.Dim(symbol, min=2, max=128))
                                for axis, symbol in axes[n].items()} for n in names)
                if isinstance(model, (Wrapped, Cached)):
                    shapes = (shapes,)
            torch.onnx.export(model, inputs, str(path), input_names=names, dynamo=True, dynamic_shapes=shapes, external_data=False)
    if elements == "int8":
        quantize(path, names, inputs)


def quantize(path, names, inputs):
    from onnxruntime import quantization as q

    class Data(q.CalibrationDataReader):
        def __init__(self):
            self.left = [{n: x.numpy() for n, x in zip(names, inputs)}]

        def get_next(self):
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        prepared = pathlib.Path(folder) / "prepared.onnx"
        q.shape_inference.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        q.quantize_static(str(prepared), str(path), Data(), quant_format=q.QuantFormat.QDQ)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.list or options.folder is None:
        print("\n".join(MODELS))
        return 0
    unknown = [name for name in options.names if name not in MODELS]
    if unknown:
        sys.exit(f"there is no model {', '.join(unknown)}; --list prints those that there are")
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in options.names or MODELS:
        path = options.folder / f"{name}.onnx"
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                export(name, path, options.seed)
            print(f"{name}: {len(onnx.load(path, load_external_data=False).graph.node)} nodes", flush=True)
        except Exception as error:
            failed += 1
            if os.environ.get("TRACE"):
                traceback.print_exc()
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
