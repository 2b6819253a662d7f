"use strict";

require("./aggregate.test.js");
require("./count.test.js");
require("./find.test.js");
require("./shape.test.js");
