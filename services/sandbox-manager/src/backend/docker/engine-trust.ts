/**
 * Owns the certificates an engine elsewhere is spoken to with: read and looked at before anything is sent, and what a
 * connection that failed over them means. Does not connect.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { DockerEngine } from "@mortise/contracts";

export interface Trust {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

export type TrustRead =
  | { readonly ok: true; readonly trust: Trust }
  | { readonly ok: false; readonly reason: string };

/** The files, or the field that is wrong with the reason. */
export function readTrust(files: NonNullable<DockerEngine["tls"]>, now = Date.now()): TrustRead {
  try {
    const [ca, cert, key] = (["ca", "cert", "key"] as const).map((name) => read(files, name));
    const authority = certificateOf("ca", files.ca, ca!, now);
    const own = certificateOf("cert", files.cert, cert!, now);
    if (!authority.ca)
      throw new Error(`sandbox.docker.tls.ca: ${files.ca} is not the certificate of an authority`);
    if (!own.checkPrivateKey(privateKeyOf(files.key, key!)))
      throw new Error(`sandbox.docker.tls.key: ${files.key} is not the key of ${files.cert}`);
    return { ok: true, trust: { ca: ca!, cert: cert!, key: key! } };
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
}

function read(files: NonNullable<DockerEngine["tls"]>, name: "ca" | "cert" | "key"): Buffer {
  try {
    return readFileSync(files[name]);
  } catch (error) {
    throw new Error(`sandbox.docker.tls.${name}: ${files[name]}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function certificateOf(name: "ca" | "cert", file: string, pem: Buffer, now: number): X509Certificate {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    throw new Error(`sandbox.docker.tls.${name}: ${file} holds no certificate`);
  }
  if (now > Date.parse(certificate.validTo))
    throw new Error(`sandbox.docker.tls.${name}: ${file} expired on ${certificate.validTo}`);
  if (now < Date.parse(certificate.validFrom))
    throw new Error(`sandbox.docker.tls.${name}: ${file} is valid from ${certificate.validFrom} only`);
  return certificate;
}

function privateKeyOf(file: string, pem: Buffer) {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new Error(`sandbox.docker.tls.key: ${file} holds no private key that can be read`);
  }
}

/** Codes of OpenSSL and Node, and what they say about the site file. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [
    /UNABLE_TO_(VERIFY|GET)|SELF_SIGNED|CERT_SIGNATURE_FAILURE/,
    "sandbox.docker.tls.ca did not sign the engine's certificate",
  ],
  [/ERR_TLS_CERT_ALTNAME_INVALID/, "the engine's certificate is not for the name in sandbox.docker.host"],
  [/CERT_HAS_EXPIRED/, "the engine's certificate has expired"],
  [/CERT_NOT_YET_VALID/, "the engine's certificate is not valid yet"],
  [
    /ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_\w+|HANDSHAKE_FAILURE)|ALERT BAD|alert (unknown ca|bad certificate|certificate)/,
    "the engine does not accept sandbox.docker.tls.cert",
  ],
  [
    /WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH/,
    "the engine speaks no TLS: sandbox.docker.tls is not for it",
  ],
  [/HTTP request to an HTTPS server/, "the engine wants TLS: give sandbox.docker.tls"],
];

/** What went wrong, with the field to correct where it is one of ours. */
export function explained(error: Error & { code?: string }): string {
  const words = `${error.code ?? ""} ${error.message}`;
  const meaning = MEANINGS.find(([pattern]) => pattern.test(words))?.[1];
  return meaning === undefined ? error.message.trim() : `${meaning} (${error.code ?? error.message.trim()})`;
}
