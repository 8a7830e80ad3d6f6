const fs = require("fs");

fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({ hello: "world" }));
