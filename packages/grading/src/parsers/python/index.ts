/** Owns the list of parsers for Python projects. */
export { django } from "./django.js";
export { matplotlib, pytest, pytestOptions, pytestV2, seaborn } from "./pytest.js";
export { sympy } from "./sympy.js";
