/** Certificates as an operator makes them for a Docker engine, by openssl; and those that are wrong in one way each. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface Wish {
  /** Of the engine; absent for a client's. */
  readonly address?: string;
  /** Valid for a second of the year 2020. */
  readonly isExpired?: boolean;
}

export class Authority {
  readonly ca: string;
  readonly #directory: string;
  readonly #key: string;
  #serial = 0;

  constructor(directory: string) {
    mkdirSync(directory, { recursive: true });
    this.#directory = directory;
    this.ca = path.join(directory, "ca.pem");
    this.#key = path.join(directory, "ca-key.pem");
    const subject = ["-subj", "/CN=Mortise test authority"];
    openssl(["req", "-x509", ...NEW_KEY, "-keyout", this.#key, "-out", this.ca, "-days", "2", ...subject]);
  }

  /** Signs a fresh key's certificate. */
  pair({ address, isExpired = false }: Wish): Pair {
    const name = path.join(this.#directory, `${++this.#serial}`);
    const [key, request, extensions, cert] = ["key", "csr", "ext", "crt"].map((kind) => `${name}.${kind}`);
    const usage = address === undefined ? "clientAuth" : `serverAuth\nsubjectAltName=IP:${address}`;
    writeFileSync(extensions!, `extendedKeyUsage=${usage}\n`);
    openssl(["req", "-new", ...NEW_KEY, "-keyout", key!, "-out", request!, "-subj", "/CN=mortise-test"]);
    const signed = ["-CA", this.ca, "-CAkey", this.#key, "-CAcreateserial", "-in", request!, "-out", cert!];
    if (isExpired) this.#signForThePast(request!, cert!, extensions!);
    else openssl(["x509", "-req", ...signed, "-days", "2", "-extfile", extensions!]);
    return { cert: cert!, key: key! };
  }

  /** Only `openssl ca` lets a certificate begin and end when one likes. */
  #signForThePast(request: string, cert: string, extensions: string): void {
    const file = (name: string) => path.join(this.#directory, name);
    writeFileSync(file("index"), "");
    writeFileSync(
      file("ca.cnf"),
      `[ca]\ndefault_ca=own\n[own]\ndatabase=${file("index")}\nrand_serial=yes\nnew_certs_dir=${this.#directory}\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n`,
    );
    const by = ["-config", file("ca.cnf"), "-cert", this.ca, "-keyfile", this.#key, "-extfile", extensions];
    const when = ["-startdate", "20200101000000Z", "-enddate", "20200101000001Z"];
    openssl(["ca", "-batch", "-notext", ...by, ...when, "-in", request, "-out", cert]);
  }
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function openssl(argv: readonly string[]): void {
  const { status, stderr, error } = spawnSync("openssl", argv, { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl ${argv[0]}: ${error?.message ?? stderr}`);
}
