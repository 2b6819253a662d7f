/** What later turns prove of earlier ones, also where no ids were kept. */
import { create } from "@bufbuild/protobuf";
import { Delivery, TurnSchema } from "@mortise/contracts";
import { expect, test } from "vitest";
import { foldAdoption, foldDelivery } from "../src/index.js";

const turn = (name: string, over: object = {}) => create(TurnSchema, { turn: name, ...over });

test("a reply that is repeated whole was delivered, whether or not its ids were kept", () => {
  const turns = [
    turn("a"),
    turn("b", { follows: "a" }),
    turn("c", { follows: "b", flags: ["adopted-partial"] }),
  ];
  expect([...foldAdoption(turns).echoed]).toEqual(["a"]);
  const observed = new Map(turns.map((one) => [one.turn, Delivery.ABANDONED]));
  expect(foldDelivery(turns, observed)).toEqual(
    new Map([
      ["a", Delivery.DELIVERED],
      ["b", Delivery.ABANDONED],
      ["c", Delivery.ABANDONED],
    ]),
  );
});

test("of several that go on from a turn, the one that keeps most of it counts", () => {
  const reply = { sampledIds: new Uint8Array(16), suffixIds: new Uint8Array(8) };
  const turns = [
    turn("a", reply),
    turn("b", { parent: "a", follows: "a", prefixLength: 4 }),
    turn("c", { parent: "a", follows: "a", prefixLength: 3 }),
  ];
  expect(foldAdoption(turns).adopted).toEqual(new Map([["a", 2]]));
});
