/** Owns chat templates of the kinds that published checkpoints have, for tests. */

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
