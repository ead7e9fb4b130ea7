"""The things that generated scenes show: icons of Font Awesome by theme, with the words people search for them by.

The icons are those of Font Awesome Free 6.6.0 by Fonticons, Inc. (https://fontawesome.com), licensed CC BY 4.0; the
words are chosen from its search terms.
"""

from __future__ import annotations

from dataclasses import dataclass

CREDIT = "Icons: Font Awesome Free 6.6.0 by Fonticons, Inc., https://fontawesome.com, CC BY 4.0."

# theme -> icon -> what people call it; the first word is the label. A phrase with no article of its own gets one.
_THEMES = {
    "animal": {
        "dog": "dog|puppy|pooch",
        "cat": "cat|kitten|kitty",
        "horse": "horse|pony|mare",
        "fish": "fish",
        "frog": "frog|toad|bullfrog",
    },
    "food": {
        "apple-whole": "apple",
        "pizza-slice": "pizza slice|slice of pizza",
        "burger": "burger|cheeseburger",
        "ice-cream": "ice cream|scoop of ice cream",
        "cake-candles": "cake|birthday cake",
    },
    "drink": {
        "mug-hot": "hot drink|cup of coffee|cup of tea|hot chocolate",
        "beer-mug-empty": "beer|mug of ale|mug of beer",
        "wine-glass": "wine glass|glass of wine",
        "martini-glass-citrus": "martini|margarita",
        "blender": "blender|mixer",
    },
    "vehicle": {
        "car-side": "car|automobile|sedan",
        "bus": "bus",
        "truck": "truck|delivery truck",
        "bicycle": "bicycle|bike",
        "tractor": "tractor|farm tractor",
    },
    "travel": {
        "plane": "plane|airplane",
        "helicopter": "helicopter|chopper",
        "rocket": "rocket",
        "sailboat": "sailboat|yacht|dinghy",
        "suitcase": "suitcase|some luggage",
    },
    "building": {
        "house": "house|home",
        "church": "church|chapel|cathedral",
        "industry": "factory|mill",
        "tent": "tent",
        "hospital": "hospital|medical center",
    },
    "weather": {
        "sun": "the sun|bright sun",
        "moon": "the moon|crescent moon",
        "cloud": "cloud",
        "snowflake": "snowflake|some snow",
        "umbrella": "umbrella",
    },
    "nature": {
        "tree": "tree|evergreen tree",
        "mountain": "mountain|hill",
        "leaf": "leaf",
        "fire": "fire|flame",
        "feather": "feather|quill",
    },
    "sport": {
        "basketball": "basketball",
        "football": "football|american football",
        "volleyball": "volleyball",
        "dumbbell": "dumbbell|weight",
        "trophy": "trophy|winner cup",
    },
    "music": {
        "guitar": "guitar|acoustic guitar",
        "drum": "drum|snare drum",
        "headphones": "some headphones|pair of headphones",
        "microphone": "microphone",
        "music": "musical note|melody",
    },
    "tool": {
        "hammer": "hammer",
        "wrench": "wrench|spanner",
        "screwdriver": "screwdriver",
        "scissors": "some scissors",
        "paintbrush": "paintbrush|brush",
    },
    "home": {
        "couch": "couch|sofa",
        "chair": "chair|seat",
        "bath": "bath|bathtub|tub",
        "lightbulb": "light bulb|bulb",
        "clock": "clock|watch",
    },
}


@dataclass(frozen=True)
class Thing:
    """Something a scene can show.

    Args:
        icon: its name in Font Awesome.
        label: the class it stands for.
        theme: the class it shares with things of its kind.
        phrases: what a caption calls it, each with an article.
    """

    icon: str
    label: str
    theme: str
    phrases: tuple[str, ...]


def _with_article(words: str) -> str:
    """Put a or an before words that have neither an article nor "some".

    Example:
        >>> _with_article("umbrella"), _with_article("the sun")
        ('an umbrella', 'the sun')
    """
    if words.startswith(("some ", "the ")):
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _thing(icon: str, theme: str, words: str) -> Thing:
    names = words.split("|")
    label = names[0].removeprefix("some ").removeprefix("the ")
    return Thing(icon, label, theme, tuple(map(_with_article, names)))


THINGS = tuple(_thing(icon, theme, words) for theme, icons in _THEMES.items() for icon, words in icons.items())
LABELS = (*(thing.label for thing in THINGS), *_THEMES)  # 60 things, then their 12 themes
