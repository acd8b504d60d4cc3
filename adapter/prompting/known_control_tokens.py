"""List the control tokens of model families, each with its source, in addition to the tokens in formats.

A tokenizer reads each of these strings as one token anywhere in a prompt, but only in this exact spelling. Strings that
equal a token only after NFKC normalization (``＜s＞``) are not included: tokenizers search for tokens before they
normalize the text (Hugging Face's special tokens are ``normalized: false``, and llama.cpp first splits the prompt at
its tokens), and full-width brackets are common in Chinese and Japanese text.

Two groups of tokens are not included: tokens such as ``<|...|>``, ``<｜...｜>`` and ``<SPECIAL_1>``, which
`adapter.prompting.escaping` matches by pattern, and tokens that are ordinary text elsewhere, such as StarCoder's
``<filename>`` and Gemma's HTML tags.
"""

from __future__ import annotations

from itertools import chain

CONTROL_TOKENS: dict[str, tuple[str, ...]] = {
    "sentencepiece: Llama 2 and most other models": ("<s>", "</s>", "<unk>", "<pad>", "<mask>"),
    "Llama 2: llama.cpp, src/llama-chat.cpp": ("<<SYS>>", "<</SYS>>", "[INST]", "[/INST]"),
    "Mistral: mistral-common, tokens/tokenizers/base.py, SpecialTokens; tekken.json": (
        *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]"),
        *("[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        *("[TOOL_CONTENT]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "[AUDIO]", "[BEGIN_AUDIO]", "[TRANSCRIBE]"),
        *("[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"),
    ),
    "Gemma 2 and 3: tokenizer_config.json of google/gemma-3-4b-it": (
        *("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>"),
        *("<image_soft_token>", "<audio_soft_token>", "[@BOS@]", "[multimodal]"),
    ),
    "GLM: templates of GLM-4.6 and 4.7; chatglm3 in llama.cpp, src/llama-chat.cpp": (
        *("[gMASK]", "[sMASK]", "[MASK]", "<sop>", "<eop>", "<eod>"),
    ),
    "Cohere: tokenizer_config.json of CohereForAI/c4ai-command-r-v01": (
        *("<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<BOS_TOKEN>", "<EOS_TOKEN>", "<EOP_TOKEN>"),
    ),
    "EXAONE: tokenizer_config.json of LGAI-EXAONE/EXAONE-4.0-1.2B; llama.cpp, src/llama-chat.cpp": (
        *("[|system|]", "[|user|]", "[|assistant|]", "[|tool|]", "[|endofturn|]", "[BOS]", "[PAD]", "[UNK]"),
    ),
    "LongCat: chat template and added tokens of meituan-longcat/LongCat-Flash-Chat": (
        *("<longcat_system>", "<longcat_user>", "<longcat_assistant>", "<longcat_s>", "</longcat_s>", "<longcat_pad>"),
        *("<longcat_unk>", "<longcat_think>", "</longcat_think>", "</longcat_user>"),
    ),
    "Seed: template of ByteDance Seed-OSS": ("<seed:bos>", "<seed:eos>", "<seed:pad>"),
    "MiniMax: template of MiniMax-M2": ("]~!b[", "]~b]", "[e~["),
    "MiniCPM: llama.cpp, src/llama-chat.cpp": ("<用户>", "<AI>"),
    "Falcon: tokenizer_config.json of tiiuae/falcon-7b": (
        *(">>TITLE<<", ">>ABSTRACT<<", ">>INTRODUCTION<<", ">>SUMMARY<<", ">>COMMENT<<", ">>ANSWER<<"),
        *(">>QUESTION<<", ">>DOMAIN<<", ">>PREFIX<<", ">>SUFFIX<<", ">>MIDDLE<<"),
    ),
    "SmolVLM: llama.cpp, src/llama-chat.cpp": ("<end_of_utterance>", "<fake_token_around_image>"),
    "StarCoder, Granite Code: tokenizer_config.json of bigcode/starcoder2-3b": (
        *("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<repo_name>", "<file_sep>", "<issue_start>"),
        *("<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>"),
        *("<jupyter_output>", "<jupyter_script>", "<empty_output>", "<gh_stars>", "<reponame>"),
    ),
    "StarCoder and StarCoder 2: tokenizer_config.json of bigcode/starcoder and bigcode/starcoder2-3b, changes": (
        *("<commit_before>", "<commit_msg>", "<commit_after>", "<pr_status>", "<pr_is_merged>", "<pr_base>"),
        *("<pr_file>", "<pr_base_code>", "<pr_diff>", "<pr_diff_hunk>", "<pr_comment>", "<pr_event_id>", "<pr_review>"),
        *("<pr_review_state>", "<pr_review_comment>", "<pr_in_reply_to_review_id>", "<pr_in_reply_to_comment_id>"),
        *("<pr_diff_hunk_comment_line>", "<code_to_intermediate>", "<intermediate_to_code>"),
    ),
    "SantaCoder: text-generation-inference, server/text_generation_server/models/santacoder.py": (
        *("<fim-prefix>", "<fim-middle>", "<fim-suffix>", "<fim-pad>"),
    ),
    "Ling: chat template of inclusionAI/Ling-flash-2.0, where each role is a name between two tokens": (
        *("<role>ASSISTANT</role>", "<role>HUMAN</role>", "<role>SYSTEM</role>", "<role>OBSERVATION</role>"),
    ),
    "BlueLM: LLaMA-Factory, src/llamafactory/data/template.py": ("[|Human|]:", "[|AI|]:"),
    "Skywork: ms-swift, template `skywork`": ("[USER]", "[BOT]", "[SEP]"),
    "Yandex: model card of yandex/YandexGPT-5-Lite-8B-instruct; llama.cpp, src/llama-chat.cpp": ("[SEP]", "[NL]"),
    "Pangu: llama.cpp, src/llama-chat.cpp": ("[unused9]", "[unused10]"),
    "InternLM 2: lmdeploy, lmdeploy/model.py, internlm-xcomposer2": ("[UNUSED_TOKEN_145]", "[UNUSED_TOKEN_146]"),
    "Yuan 2: its README, tokens that are added to the tokenizer": ("<FIM_PREFIX>", "<FIM_MIDDLE>", "<FIM_SUFFIX>"),
    "LLaDA 2: sglang_omni, models/llada2_uni": ("<boi>",),
    "TeleChat: tokenizer_config.json of Tele-AI/TeleChat3-36B-Thinking, special_tokens_map.json of the Coder": (
        *("<_start>", "<_end>", "<_pad>", "<_user>", "<_bot>", "<_system>", "<_observation>"),
    ),
    "InternVL: tokenizer_config.json of OpenGVLab/InternVL2-2B": ("<IMG_CONTEXT>", "<quad>", "</quad>"),
    "Chameleon: tokenizer_config.json of facebook/chameleon-7b": ("<racm3:break>", "<eoss>"),
    "Reka, Yuan: chat template of RekaAI/reka-flash-3": ("<sep>",),
    "InternLM: tokenizer_config.json of internlm/internlm-chat-7b": ("<eoh>", "<eoa>"),
    "tool results: templates of several families": ("<tool_output>", "</tool_output>", "</tool_response>"),
    "images: several families": ("<im_patch>",),
    "image placeholder: llama.cpp, tools/mtmd/mtmd.cpp, mtmd_default_marker": ("<__media__>",),
}
"""Maps a model family and the source of its tokens to the tokens."""

CHAT_TOKENS: tuple[str, ...] = tuple(dict.fromkeys(chain.from_iterable(CONTROL_TOKENS.values())))

MAX_ADDED = 250
"""Maximum number of control tokens, beyond the table, that a model may add. Published vocabularies add about ten."""

_LENGTHS = range(4, 101)
"""Allowed lengths of a token that a model adds, in characters. Shorter tokens such as ``<s>`` are in the table."""

_HTML = (
    " a b i u s p q br hr em li ol ul dl dt dd th td tr h1 h2 h3 h4 h5 h6 sub sup div pre img code span html head body "
    "table thead tbody tfoot title script style strong caption blockquote "
)
"""Names of HTML elements, separated by spaces. Their tags are single tokens in Gemma and other models."""


def is_distinctive_token(token: str) -> bool:
    """Return whether a control token cannot be ordinary text.

    Such a token neither begins nor ends with a letter or digit, contains at least two letters and no whitespace, and is
    not an HTML tag.
    """
    return (
        len(token) in _LENGTHS
        and not (token[0].isalnum() or token[-1].isalnum())
        and not any(map(str.isspace, token))
        and sum(map(str.isalpha, token)) > 1
        and f" {token.strip('</>').lower()} " not in _HTML
    )
