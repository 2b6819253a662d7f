/** Preloaded with --import, in every thread: an installation in which TensorFlow.js cannot be found. */
import { registerHooks } from "node:module";

registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith("@tensorflow/")) throw new Error(`no ${specifier} in this installation`);
    return next(specifier, context);
  },
});
