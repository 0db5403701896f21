import { describe, expect, it } from "vitest";
import { scriptRunBy } from "./files";

describe("the script that a configuration runs", () => {
  it("is found in whichever form the entrypoint has", () => {
    expect(scriptRunBy("name: x\nentrypoint: python3 train.py --lr 1\nsearcher: {}\n")).toBe("train.py");
    expect(scriptRunBy('entrypoint: ["python3", "src/train.py"]\n')).toBe("src/train.py");
    expect(scriptRunBy("entrypoint:\n  - bash\n  - run.sh\nname: x\n")).toBe("run.sh");
    expect(scriptRunBy("entrypoint: >\n  torchrun\n  train.py\n")).toBe("train.py");
  });

  it("is none where the words name none of the code", () => {
    expect(scriptRunBy("entrypoint: python3 /opt/train.py\n")).toBeUndefined();
    expect(scriptRunBy("entrypoint: python3 -m package.train\nname: train.py\n")).toBeUndefined();
    expect(scriptRunBy("name: train.py\n")).toBeUndefined();
  });
});
