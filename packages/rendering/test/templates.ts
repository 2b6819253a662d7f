/**
 * Owns chat templates of our own with the behaviour of published families, for tests. Where a test needs the
 * published ones it says so and takes them from packages (see families/).
 */

/** Answers like published Hermes templates: JSON calls, results inside user turns. */
export const HERMES_TEMPLATE = [
  "{%- if tools -%}{{ '<|im_start|>system\\n' }}{%- for tool in tools -%}{{ tool | tojson }}{%- endfor -%}{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- for m in messages -%}",
  "{%- if m.role == 'tool' -%}",
  "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}",
  "{{ '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}",
  "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- else -%}{{ '<|im_start|>' + m.role + '\\n' + m.content }}",
  "{%- for c in m.tool_calls or [] -%}{{ '<tool_call>\\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments | tojson }}{{ '}\\n</tool_call>' }}{%- endfor -%}",
  "{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}",
].join("");

/** Shows only the last reply in full, so history is rewritten at every turn; knows no calls. */
export const FORGETFUL_TEMPLATE = HERMES_TEMPLATE.replace(
  "'\\n' + m.content }}",
  "'\\n' + (m.content if m.role != 'assistant' or loop.last else '(earlier)') }}",
).replace(/\{%- for c in .*? endfor -%\}/, "");

/** Numbers the messages: what follows a reply depends on how much came before it. */
export const COUNTING_TEMPLATE = HERMES_TEMPLATE.replace(
  "'<|im_start|>' + m.role",
  "'<|im_start|>' + loop.index ~ ' ' + m.role",
);

/** Refuses a system message anywhere but in front, like Qwen3.5; takes no text as arguments. */
export const STRICT_SYSTEM_TEMPLATE = HERMES_TEMPLATE.replace(
  "{%- else -%}",
  "{%- elif m.role == 'system' and not loop.first -%}{{ raise_exception('System message must come first') }}{%- else -%}",
);

/**
 * Thinks like Qwen3: reasoning is shown behind the last user message only, `enable_thinking=false` closes it in
 * the prompt, and text is taken as arguments.
 */
export const FORGETS_THINKING_TEMPLATE = [
  "{%- set ns = namespace(last=0) -%}",
  "{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}",
  "{%- for m in messages -%}",
  "{%- if m.role == 'tool' -%}{{ '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}",
  "{%- else -%}{{ '<|im_start|>' + m.role + '\\n' }}",
  "{%- if m.reasoning_content and loop.index0 > ns.last -%}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{%- endif -%}",
  "{{ m.content }}",
  "{%- for c in m.tool_calls or [] -%}{{ '\\n<tool_call>\\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}{{ '}\\n</tool_call>' }}{%- endfor -%}",
  "{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and not enable_thinking -%}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}{%- endif -%}",
].join("");

/** Writes calls as Qwen3-Coder and Qwen3.5 do, and opens reasoning in the prompt like the latter. */
export const XML_TEMPLATE = [
  "{%- for m in messages -%}",
  "{%- if m.role == 'tool' -%}{{ '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}",
  "{%- else -%}{{ '<|im_start|>' + m.role + '\\n' }}",
  "{%- if m.role == 'assistant' -%}{{ '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}{%- endif -%}",
  "{{ m.content }}",
  "{%- for c in m.tool_calls or [] -%}{{ '\\n<tool_call>\\n<function=' + c.function.name + '>\\n' }}",
  "{%- for name, value in c.function.arguments | items -%}{{ '<parameter=' + name + '>\\n' }}{{ value if value is string else value | tojson }}{{ '\\n</parameter>\\n' }}{%- endfor -%}",
  "{{ '</function>\\n</tool_call>' }}{%- endfor -%}",
  "{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n<think>\\n' }}{%- endif -%}",
].join("");

/** One bare JSON call a turn, like Llama 3.1 and later. */
export const LLAMA_TEMPLATE = [
  "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n\\n' }}",
  "{%- if m.tool_calls -%}",
  "{%- if m.tool_calls | length != 1 -%}{{ raise_exception('one call at a time') }}{%- endif -%}",
  "{%- set f = m.tool_calls[0].function -%}{{ '{\"name\": \"' + f.name + '\", \"parameters\": ' }}{{ f.arguments | tojson }}{{ '}' }}",
  "{%- else -%}{{ m.content | trim }}{%- endif -%}",
  "{{ '<|im_end|>' }}{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n\\n' }}{%- endif -%}",
].join("");
