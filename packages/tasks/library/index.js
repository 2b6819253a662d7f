"use strict";

module.exports = {
  ...require("./src/aggregate.js"),
  ...require("./src/count.js"),
  ...require("./src/find.js"),
  ...require("./src/shape.js"),
};
