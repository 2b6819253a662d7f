/**
 * Owns the demo policy's chat format: a Jinja template for tokenizer_config.json, and the tool the demo harness
 * offers. Does not render: any implementation of Hugging Face chat templates does.
 *
 * A tool call is `<tool_call>NAME v1 => v2</tool_call>`: the argument values joined by ` => ` in the order of
 * the tool's schema, or in their own order when the template is not given the tools. Arguments must be a mapping,
 * as chat templates expect: the JSON text of the OpenAI format is refused. Two things are left out to keep a trial
 * within 100 tokens: system messages, and the tools' schemas (a policy of this size knows its one tool).
 * Messages are separated, not ended, by a line break: the conversation ends with an end token, which is what the
 * policy samples.
 */

const TEMPLATE_LINES = [
  "{%- for message in messages if message.role != 'system' -%}",
  "{%- if not loop.first -%}{{ '\\n' }}{%- endif -%}",
  "{{ '<|im_start|>' + message.role + '\\n' }}",
  "{%- if message.content -%}{{ message.content }}{%- endif -%}",
  "{%- if message.tool_calls -%}",
  "{%- for call in message.tool_calls -%}",
  "{%- set arguments = call.function.arguments -%}",
  "{{ '<tool_call>' + call.function.name }}",
  "{%- if arguments is string -%}{{ raise_exception('tool call arguments must be a mapping, not text') }}{%- endif -%}",
  "{%- set order = namespace(names=arguments) -%}",
  "{%- if tools -%}{%- for tool in tools if tool.function.name == call.function.name -%}",
  "{%- set order.names = tool.function.parameters.properties -%}",
  "{%- endfor -%}{%- endif -%}",
  "{%- for name, unused in order.names | items if name in arguments -%}",
  "{{ (' ' if loop.first else ' => ') + arguments[name] }}",
  "{%- endfor -%}",
  "{{ '</tool_call>' }}",
  "{%- endfor -%}",
  "{%- endif -%}",
  "{{ '<|im_end|>' }}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '\\n<|im_start|>assistant\\n' }}{%- endif -%}",
];

/** The demo policy's `chat_template`. */
export const demoChatTemplate = TEMPLATE_LINES.join("");

/** Tokens the template writes as one id each: the first two delimit messages, the others a tool call. */
export const DEMO_SPECIAL_TOKENS = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
] as const;

/** The tool of the mini harness whose calls the demo policy writes. */
export const demoTools = [
  {
    type: "function",
    function: {
      name: "edit",
      description: "Replace a piece of the function.",
      parameters: {
        type: "object",
        properties: { old: { type: "string" }, new: { type: "string" } },
        required: ["old", "new"],
      },
    },
  },
] as const;
