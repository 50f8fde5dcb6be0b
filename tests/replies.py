"""Replies of language models, and the answer that each of them gives.

Of each: what it says, the value that it arrives at, and the value that stands alone on its first
line; None for no value.
"""

from typing import NamedTuple


class Reply(NamedTuple):
    text: str
    reasoned: str | None
    alone: str | None = None


AGAIN = (
    "Evaluate the expression, where + is addition modulo 10. Answer with its value alone: 0 to 9."
)

ARITHMETIC = [
    Reply("7", "7", "7"),
    Reply(" 7\n", "7", "7"),
    Reply("7.", "7"),
    Reply("7\nbecause 3+4 is that", "4", "7"),
    Reply("The answer is 7.", "7"),
    Reply("the answer is: 7", "7"),
    Reply("**Answer:** 7", "7"),
    Reply("**Final Answer**: **7**", "7"),
    Reply("Answer:\n\n7", "7"),
    Reply("The answer is 7, not 3.", "7"),
    Reply("The answer is therefore the digit 7.", "7"),
    Reply("3+4 = 7", "7"),
    Reply("First, 8*3 = 24, which is 4. Then 4+9 = 13, so 3. 4*3 = 12. The answer is 2.", "2"),
    Reply("Step 1: 2*3 = 6\nStep 2: 6+5 = 11 ≡ 1 (mod 10)", "1"),
    Reply("The answer is 5. Wait, I forgot the 1: the answer is 6.", "6"),
    Reply("So we are left with 7", "7"),
    Reply(r"\boxed{7}", "7"),
    Reply(r"$$\boxed{\text{7}}$$", "7"),
    Reply(r"Thus $x = 12 \equiv 2$, so \boxed{ 12 \equiv 2 }.", "2"),
    Reply(r"The answer is \(7\).", "7"),
    Reply("= $7$", "7"),
    Reply("<answer>7</answer>", "7"),
    Reply("I add 3 and 4. <answer>The sum is 7</answer> Is there a 9?", "7"),
    Reply("<think>It is 3? No: 4. 4 = 4</think>\n\n7", "7"),
    Reply("<think>I never stop. 2+2 = 4", "4"),
    Reply(f"7\n\n{AGAIN} Expression: (1+2) Answer: 3", "7", "7"),
    Reply(f"{AGAIN} Expression: (3+4) Answer: 7", "7"),
    Reply("`7`", "7"),
    Reply("_7_", "7"),
    Reply("“7”", "7"),
    Reply("７", "7"),
    Reply("𝟕", "7"),
    Reply("The answer is 7, of course", "7"),
    Reply("10", None),
    Reply("17", None),
    Reply("3.5", None),
    Reply("-3", None),
    Reply("−3", None),
    Reply("1/3", None),
    Reply("1,000", None),
    Reply("x_3", None),
    Reply("v7", None),
    Reply("3²", None),
    Reply("The answer is 10.", None),
    Reply("12 is 2, and 3.5 is nothing", "2"),
    Reply("3 >= 2 and 5 => 4", "4"),
    Reply("0, 1, 2 or 9", "9"),
    Reply("seven", None),
    Reply("I don't know", None),
    Reply("I do not know.\n", None),
    Reply("", None),
    Reply("\n \n", None),
    Reply("?" * 1000, None),
]

BOOLEAN = [
    Reply("TRUE", "1", "1"),
    Reply("FALSE.", "0"),
    Reply("The answer is FALSE", "0"),
    Reply("1 & 0 = 0, and ~0 = 1. **Answer: TRUE**", "1"),
    Reply(r"\boxed{\mathrm{TRUE}}", "1"),
    Reply("UNTRUE", None),
    Reply("true", None),  # no spelling of this algebra
    Reply("10", None),
    Reply("It cannot be told", None),
]

KLEENE = [
    Reply("unknown", "unknown", "unknown"),
    Reply("`true and unknown` is unknown.\n\n<answer>\nunknown\n</answer>", "unknown"),
    Reply("true and false = false, so the answer is **false**.", "false"),
    Reply("untrue", None),
]

INTEGERS = [
    Reply("30633", "30633", "30633"),
    Reply("30,633", "30633"),
    Reply("1,230,633 is it", "1230633"),
    Reply("45*678 = 30510, so the answer is 30633.", "30633"),
    Reply("The answer is **30,510**", "30510"),
    Reply("007", "7", "7"),
    Reply("000", "0", "0"),
    Reply("?", "?", "?"),
    Reply("5-6 is below zero. The answer is ?", "?"),
    Reply("Is it 42?", "42"),
    Reply(r"\boxed{12}", "12"),
    Reply("It is 3.5", None),
    Reply("-3", None),
    Reply("1/3", None),
    Reply("12a", None),
    Reply("It cannot be told", None),
]

FOLDS = [
    Reply("7", "7", "7"),
    Reply("LAST is 4, so the answer is 4.", "4"),
    Reply("17", None),
]
