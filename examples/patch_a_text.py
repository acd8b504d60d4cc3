"""Apply a model's edit to a string, in any edit format, or reject it with the reason.

def total(prices):
    return round(sum(prices), 2)
rejected: old_text was not found. The closest match is line 2 (54 % similar)
"""

from adapter import EditError, patch_text

TEXT = """def total(prices):
    return sum(prices)
"""
WRITTEN = """Sure, this rounds it:

<<<<<<< SEARCH
  return sum(prices)
=======
  return round(sum(prices), 2)
>>>>>>> REPLACE
"""

print(patch_text(TEXT, WRITTEN).text, end="")
try:
    patch_text(TEXT, [{"old_text": "return max(prices)", "new_text": "return 0"}])
except EditError as error:
    print("rejected:", str(error).partition(",")[0])
