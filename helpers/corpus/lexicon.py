"""The words of the course's translator: English words with their French forms, all in lower case."""


def _nouns(text: str) -> dict[str, tuple[str, str]]:
    return {english: (french, gender) for english, french, gender in map(str.split, text.split(","))}


def _pairs(text: str) -> dict[str, str]:
    return {english: french for english, french in map(str.split, text.split(","))}


# English noun: (French noun, its gender). Beings can be subjects of any sentence, things only of "... is ...".
ANIMALS = _nouns("""
    cat chat m, dog chien m, horse cheval m, bird oiseau m, owl hibou m, cow vache f, mouse souris f
""")
PEOPLE = _nouns("""
    girl fille f, boy garçon m, woman femme f, man homme m, child enfant m, teacher professeur m,
    doctor médecin m, neighbor voisin m, queen reine f, king roi m, actress actrice f, singer chanteuse f,
    uncle oncle m
""")
THINGS = _nouns("""
    apple pomme f, orange orange f, cake gâteau m, egg œuf m, cup tasse f, bottle bouteille f, plate assiette f,
    knife couteau m, house maison f, garden jardin m, hotel hôtel m, church église f, school école f,
    castle château m, bridge pont m, island île f, beach plage f, tree arbre m, flower fleur f, star étoile f,
    car voiture f, boat bateau m, plane avion m, bicycle vélo m, key clé f, door porte f, window fenêtre f,
    table table f, chair chaise f, bed lit m, clock horloge f, lamp lampe f, mirror miroir m, book livre m,
    letter lettre f, painting tableau m, photo photo f, map carte f, computer ordinateur m, hat chapeau m,
    coat manteau m, dress robe f, shirt chemise f, bag sac m, umbrella parapluie m, ring bague f
""")
BEINGS = ANIMALS | PEOPLE
NOUNS = BEINGS | THINGS

# English adjective: (masculine, feminine, masculine before a vowel, before the noun?, kinds of nouns it can describe)
ADJECTIVES = {
    "black": ("noir", "noire", "noir", False, "animals things"),
    "white": ("blanc", "blanche", "blanc", False, "animals things"),
    "red": ("rouge", "rouge", "rouge", False, "things"),
    "green": ("vert", "verte", "vert", False, "things"),
    "blue": ("bleu", "bleue", "bleu", False, "things"),
    "yellow": ("jaune", "jaune", "jaune", False, "things"),
    "gray": ("gris", "grise", "gris", False, "animals things"),
    "purple": ("violet", "violette", "violet", False, "things"),
    "expensive": ("cher", "chère", "cher", False, "things"),
    "heavy": ("lourd", "lourde", "lourd", False, "animals things"),
    "round": ("rond", "ronde", "rond", False, "things"),
    "modern": ("moderne", "moderne", "moderne", False, "things"),
    "broken": ("cassé", "cassée", "cassé", False, "things"),
    "strange": ("étrange", "étrange", "étrange", False, "people animals things"),
    "famous": ("célèbre", "célèbre", "célèbre", False, "people animals things"),
    "happy": ("heureux", "heureuse", "heureux", False, "people animals"),
    "tired": ("fatigué", "fatiguée", "fatigué", False, "people animals"),
    "clever": ("intelligent", "intelligente", "intelligent", False, "people animals"),
    "big": ("grand", "grande", "grand", True, "people animals things"),
    "small": ("petit", "petite", "petit", True, "people animals things"),
    "old": ("vieux", "vieille", "vieil", True, "people animals things"),
    "new": ("nouveau", "nouvelle", "nouvel", True, "people animals things"),
    "beautiful": ("beau", "belle", "bel", True, "people animals things"),
    "young": ("jeune", "jeune", "jeune", True, "people animals"),
}

NAMES = dict.fromkeys("jane anna marie sara emma".split(), "f")
NAMES |= dict.fromkeys("tom paul omar david hugo".split(), "m")

# English country or continent: (French, gender). The preposition is "en" for feminine ones and "au" for masculine ones.
COUNTRIES = _nouns("""
    africa afrique f, asia asie f, europe europe f, france france f, italy italie f, spain espagne f,
    germany allemagne f, norway norvège f, china chine f, india inde f, egypt égypte f, greece grèce f,
    kenya kenya m, peru pérou m, japan japon m, canada canada m, brazil brésil m, mexico mexique m,
    portugal portugal m, morocco maroc m
""")

MONTHS = _pairs("""
    january janvier, february février, march mars, april avril, may mai, june juin, july juillet, august août,
    september septembre, october octobre, november novembre, december décembre
""")

# Verbs whose object is a noun, and verbs whose object is a country.
VERBS = _pairs("""
    sees voit, loves aime, wants veut, finds trouve, draws dessine, paints peint, watches regarde, hides cache,
    follows suit, chooses choisit, forgets oublie, describes décrit, touches touche
""")
PLACE_VERBS = {"visits": "visite", "leaves": "quitte", "crosses": "traverse", "loves": "aime"}
# (English verb, preposition before a country): French verb.
MOVES = {
    ("goes", "to"): "va",
    ("travels", "to"): "voyage",
    ("returns", "to"): "retourne",
    ("lives", "in"): "habite",
    ("works", "in"): "travaille",
}
ADVERBS = {"often": "souvent", "always": "toujours", "rarely": "rarement"}

# English determiner: (masculine, feminine, masculine before a vowel, feminine before a vowel)
DETERMINERS = {
    "the": ("le", "la", "l'", "l'"),
    "a": ("un", "une", "un", "une"),
    "this": ("ce", "cette", "cet", "cette"),
    "my": ("mon", "ma", "mon", "mon"),
}

# Before a silent h, articles are shortened as before a vowel; the h of "hibou" is not silent.
SILENT_H = {"homme", "hôtel", "horloge", "heureux", "heureuse"}
VOWELS = set("aàâäeéèêëiîïoôöœuùûüy")


def starts_with_vowel(french: str) -> bool:
    """Whether a word starts with a vowel or a silent h, so that an article before it is shortened."""
    return french[0] in VOWELS or french in SILENT_H


def english_words() -> list[str]:
    """Every English word of the grammar, in code-point order."""
    words = set(NAMES) | set(COUNTRIES) | set(MONTHS) | set(NOUNS) | set(ADJECTIVES) | set(VERBS) | set(PLACE_VERBS)
    words |= {verb for verb, _ in MOVES} | {preposition for _, preposition in MOVES} | set(ADVERBS) | set(DETERMINERS)
    return sorted(words | {"an", "is", "in", "with"})


def french_words() -> list[str]:
    """Every French word of the grammar, in code-point order."""
    words = set(NAMES) | {french for french, _ in (COUNTRIES | NOUNS).values()} | set(MONTHS.values())
    words |= {form for *forms, _, _ in ADJECTIVES.values() for form in forms}
    words |= set(VERBS.values()) | set(PLACE_VERBS.values()) | set(MOVES.values()) | set(ADVERBS.values())
    words |= {form for forms in DETERMINERS.values() for form in forms}
    return sorted(words | {"est", "en", "au", "avec"})
