/**
 * Owns what stands in a conversation for content that is not text: the policy reads text only, and an agent
 * that looks at a picture must still be able to go on. Dialects note each replacement (AuditNote).
 */
export const PLACEHOLDERS = {
  image: "[image omitted]",
  file: "[file omitted]",
  audio: "[audio omitted]",
} as const;

export type Omitted = keyof typeof PLACEHOLDERS;
