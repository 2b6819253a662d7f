/** Owns the list of parsers for JavaScript and TypeScript projects. */
export { bpmnJs, chartJs, openlayers } from "./failures-only/browser.js";
export { eslint, marked, p5js } from "./failures-only/mocha.js";
export { calypso, lighthouseMocha } from "./indented.js";
export { jest, jestJson, vitest } from "./jest.js";
export { carbon, grommet } from "./jest-files.js";
export { karma } from "./karma.js";
export { highlightjs, mocha } from "./mocha.js";
export { mochaJson } from "./mocha-json.js";
export { nextCypress, nextKarma } from "./next.js";
export { plotly } from "./plotly.js";
export { quartoCli } from "./quarto.js";
