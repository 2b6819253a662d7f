/**
 * Owns what the Docker tests share: an engine and the images, made before the first test and gone after the last.
 * Without an engine every test is skipped, and the reason is printed.
 */
import type { TestProject } from "vitest/node";
import { DockerEngine } from "./engine.js";
import { buildImages } from "./images.js";

export interface DockerSetup {
  /** Environment for docker, compose and testcontainers; undefined when there is no engine. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  /** Why there is none. */
  readonly absent: string;
}

declare module "vitest" {
  export interface ProvidedContext {
    docker: DockerSetup;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const engine = DockerEngine.find();
  if (typeof engine === "string") {
    process.stderr.write(`Docker tests are skipped: ${engine}\n`);
    project.provide("docker", { environment: undefined, absent: engine });
    return async () => {};
  }
  try {
    await engine.start("host");
    const images = await buildImages(engine.environment, engine.hasHostNetworkOnly);
    await engine.start("isolated");
    project.provide("docker", { environment: { ...engine.environment, ...images }, absent: "" });
  } catch (error) {
    await engine.stop();
    throw error;
  }
  return () => engine.stop();
}
