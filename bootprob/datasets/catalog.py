"""The data sets by name, with the counts and checksums of the files they were described from."""

from __future__ import annotations

from dataclasses import replace

from bootprob.datasets.source import File, OpenML, Source

__all__ = ["CATALOG"]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_COPIES = "https://raw.githubusercontent.com/"
_CC_BY = "CC BY 4.0"
_UNSTATED = "none stated"


def _file(name: str, sha256: str, uci: str | None, copy: str) -> File:
    """A file at UCI, unless it is not there, and its copy (owner/name/path) on GitHub."""
    owner, repository, path = copy.split("/", 2)
    urls = () if uci is None else (_UCI + uci,)
    return File(name, sha256, (*urls, f"{_COPIES}{owner}/{repository}/HEAD/{path}"))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _uci(path: str, sha256: str, copy: str = "") -> tuple[File, ...]:
    """One file at UCI, by default with the copy that most of these data sets have."""
    name = path.rsplit("/", 1)[1]
    return (_file(name, sha256, path, copy or f"mikeizbicki/datasets/csv/uci/{name}"),)


def _doi(suffix: str) -> str:
    return f"UCI Machine Learning Repository, doi:10.24432/{suffix}"


_HEART = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal"
_heart_disease = Source(
    name="heart",
    title="Heart Disease (Cleveland, Hungary, Switzerland)",
    columns=_words(f"{_HEART} num"),
    target="num",
    rows=720,
    prepared=22,
    classes=(("0", 360), ("1", 209), ("2", 68), ("3", 65), ("4", 18)),
    missing=1061,
    categorical=_words("cp restecg slope thal"),
    files=tuple(
        _file(
            f"processed.{place}.data",
            checksum,
            f"heart-disease/processed.{place}.data",
            f"adamuas/datasets/heart/processed.{place}.data",
        )
        for place, checksum in (
            ("cleveland", "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
            ("hungarian", "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"),
            ("switzerland", "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"),
        )
    ),
    origin="UCI Heart Disease",
    licence=_CC_BY,
    citation=_doi("C52P4X"),
    note="Three files, one below the other, have the thesis's 720 rows; it counts 362 positives.",
)
_hepatitis = Source(
    name="hepatitis",
    title="Hepatitis",
    columns=_words(
        "class age sex steroid antivirals fatigue malaise anorexia liver_big liver_firm "
        "spleen_palpable spiders ascites varices bilirubin alk_phosphate sgot albumin protime "
        "histology"
    ),
    rows=155,
    prepared=19,
    classes=(("1", 32), ("2", 123)),
    missing=167,
    positive="1",
    files=_uci(
        "hepatitis/hepatitis.data",
        "9971f9d18abb4fc9dd6749eefb0f864b36fa7bdd59f54188c0b148a5c28214bc",
    ),
    origin="UCI Hepatitis",
    licence=_CC_BY,
    citation=_doi("C5Q59J"),
    note="Positive: died.",
)
_credit_approval = Source(
    name="crx",
    title="Credit Approval",
    columns=(*(f"A{k}" for k in range(1, 16)), "class"),
    rows=690,
    prepared=46,
    classes=(("+", 307), ("-", 383)),
    missing=67,
    positive="+",
    categorical=_words("A1 A4 A5 A6 A7 A9 A10 A12 A13"),
    files=_uci(
        "credit-screening/crx.data",
        "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d",
    ),
    origin="UCI Credit Approval",
    licence=_CC_BY,
    citation=_doi("C5FS30"),
)

_SOURCES = (
    Source(
        name="wisconsin",
        title="Breast Cancer Wisconsin (Diagnostic)",
        columns=(),
        rows=569,
        prepared=30,
        classes=(("malignant", 212), ("benign", 357)),
        positive="malignant",
        form="bundled",
        origin="UCI, bundled in scikit-learn",
        licence=_CC_BY,
        citation=_doi("C5DW2B"),
    ),
    Source(
        name="iris",
        title="Iris",
        columns=(),
        rows=150,
        prepared=4,
        classes=(("setosa", 50), ("versicolor", 50), ("virginica", 50)),
        form="bundled",
        origin="UCI, bundled in scikit-learn",
        licence=_CC_BY,
        citation=_doi("C56C76"),
        note="Three classes of one size: `labels` has them; two-class flags set setosa apart.",
    ),
    Source(
        name="wine",
        title="Wine",
        columns=(),
        rows=178,
        prepared=13,
        classes=(("class_0", 59), ("class_1", 71), ("class_2", 48)),
        form="bundled",
        origin="UCI, bundled in scikit-learn",
        licence=_CC_BY,
        citation=_doi("C5PC7J"),
    ),
    Source(
        name="digits",
        title="Optical Recognition of Handwritten Digits (test part)",
        columns=(),
        rows=1797,
        prepared=64,
        classes=tuple(
            (str(digit), count)
            for digit, count in enumerate((178, 182, 177, 183, 181, 182, 181, 179, 174, 180))
        ),
        form="bundled",
        origin="UCI, bundled in scikit-learn",
        licence=_CC_BY,
        citation=_doi("C50P49"),
        note="8 × 8 pixels; ten classes.",
    ),
    Source(
        name="german",
        title="Statlog (German Credit Data)",
        columns=_words(
            "status duration credit_history purpose amount savings employment installment_rate "
            "personal_status other_debtors residence_since property age installment_plans housing "
            "existing_credits job dependents telephone foreign_worker class"
        ),
        rows=1000,
        prepared=61,
        classes=(("1", 700), ("2", 300)),
        positive="2",
        categorical=_words(
            "status credit_history purpose savings employment personal_status other_debtors "
            "property installment_plans housing job telephone foreign_worker"
        ),
        separator=" ",
        files=_uci(
            "statlog/german/german.data",
            "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
        ),
        origin="UCI Statlog",
        licence=_CC_BY,
        citation=_doi("C5NC77"),
        note="Positive: bad credit.",
    ),
    Source(
        name="australian",
        title="Statlog (Australian Credit Approval)",
        columns=(*(f"A{k}" for k in range(1, 15)), "class"),
        rows=690,
        prepared=42,
        classes=(("0", 383), ("1", 307)),
        positive="1",
        categorical=_words("A1 A4 A5 A6 A8 A9 A11 A12"),
        separator=" ",
        files=_uci(
            "statlog/australian/australian.dat",
            "3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c",
        ),
        origin="UCI Statlog",
        licence=_CC_BY,
        citation=_doi("C59012"),
        note="Gaps were filled at the source.",
    ),
    Source(
        name="banknote",
        title="banknote authentication",
        columns=_words("variance skewness curtosis entropy class"),
        rows=1372,
        prepared=4,
        classes=(("0", 762), ("1", 610)),
        positive="1",
        files=_uci(
            "00267/data_banknote_authentication.txt",
            "d0539aaed2139ba7a587b3e34fb345ce503ff7d5d33dbf9912d8e195ce425cb9",
            "jbrownlee/Datasets/banknote_authentication.csv",
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C55P57"),
        note="Positive: forged.",
    ),
    Source(
        name="careval",
        title="Car Evaluation",
        columns=_words("buying maint doors persons lug_boot safety class"),
        rows=1728,
        prepared=21,
        classes=(("unacc", 1210), ("acc", 384), ("good", 69), ("vgood", 65)),
        categorical=_words("buying maint doors persons lug_boot safety"),
        files=_uci(
            "car/car.data", "b703a9ac69f11e64ce8c223c0a40de4d2e9d769f7fb20be5f8f2e8a619893d83"
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C5JP48"),
    ),
    Source(
        name="housing",
        title="Boston Housing",
        columns=_words("CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV"),
        target="MEDV",
        rows=506,
        prepared=13,
        classes=(("<= 21.2", 256), ("> 21.2", 250)),
        threshold=21.2,
        positive="<= 21.2",
        separator=" ",
        files=(
            _file(
                "housing.data",
                "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
                None,
                "rupakc/UCI-Data-Analysis/Boston Housing Dataset/Boston Housing/housing.data",
            ),
        ),
        openml=OpenML(531),
        origin="StatLib, formerly UCI",
        licence=_UNSTATED,
        citation="Harrison and Rubinfeld (1978), J. Environ. Econ. Manag. 5, 81-102",
        note="Positive: at most the median price. Column B is a formula of race.",
    ),
    _heart_disease,
    replace(
        _heart_disease,
        name="heart-statlog",
        title="Statlog (Heart)",
        folder="heart",
        columns=_words(f"{_HEART} class"),
        target="class",
        rows=270,
        prepared=20,
        classes=(("1", 150), ("2", 120)),
        missing=0,
        positive="2",
        categorical=_words("cp restecg thal"),
        separator=" ",
        files=_uci(
            "statlog/heart/heart.dat",
            "f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9",
        ),
        origin="UCI Statlog",
        citation=_doi("C57303"),
        note="Positive: disease.",
    ),
    Source(
        name="votes",
        title="Congressional Voting Records",
        columns=_words(
            "party handicapped_infants water_project budget_resolution physician_fee_freeze "
            "el_salvador_aid religious_groups_in_schools anti_satellite_test_ban "
            "nicaraguan_contras_aid mx_missile immigration synfuels_cutback education_spending "
            "superfund_right_to_sue crime duty_free_exports south_africa_export"
        ),
        target="party",
        rows=435,
        prepared=32,
        classes=(("democrat", 267), ("republican", 168)),
        missing=392,
        positive="republican",
        categorical=_words(
            "handicapped_infants water_project budget_resolution physician_fee_freeze "
            "el_salvador_aid religious_groups_in_schools anti_satellite_test_ban "
            "nicaraguan_contras_aid mx_missile immigration synfuels_cutback education_spending "
            "superfund_right_to_sue crime duty_free_exports south_africa_export"
        ),
        files=_uci(
            "voting-records/house-votes-84.data",
            "c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e",
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C5C01P"),
        note='Thesis 2.3.5 takes the democrats for positive: `positive="democrat"`.',
    ),
    Source(
        name="divorce",
        title="Divorce Predictors",
        columns=(*(f"Atr{k}" for k in range(1, 55)), "class"),
        rows=170,
        prepared=54,
        classes=(("0", 86), ("1", 84)),
        positive="1",
        separator=";",
        header=("Target", "Class"),
        files=(
            _file(
                "divorce.csv",
                "9f764154a3abdbbb41c935659daafcf3b178b1c1e13ffbf3e31aa078800279ef",
                None,
                "SHILPIKUMARI2111/Divorce-Prediction/divorce.csv",
            ),
        ),
        origin="UCI (there as an archive)",
        licence=_CC_BY,
        citation="UCI Machine Learning Repository, data set 539",
        note="Positive: divorced.",
    ),
    Source(
        name="pima",
        title="Pima Indians Diabetes",
        columns=_words("preg plas pres skin insu mass pedi age class"),
        rows=768,
        prepared=8,
        classes=(("0", 500), ("1", 268)),
        positive="1",
        files=(
            _file(
                "pima-indians-diabetes.data",
                "06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5",
                None,
                "mikeizbicki/datasets/csv/uci/pima-indians-diabetes.data",
            ),
        ),
        openml=OpenML(37, (("tested_negative", "0"), ("tested_positive", "1"))),
        origin="NIDDK, formerly UCI",
        licence=_UNSTATED,
        citation="Smith et al. (1988), Proc. Symp. Comput. Appl. Med. Care, 261-265",
        note="Zeros in plas, pres, skin, insu and mass stand for missing; they are left so.",
    ),
    Source(
        name="bupa",
        title="Liver Disorders",
        columns=_words("mcv alkphos sgpt sgot gammagt drinks selector"),
        target="selector",
        rows=345,
        prepared=6,
        classes=(("1", 145), ("2", 200)),
        positive="1",
        files=_uci(
            "liver-disorders/bupa.data",
            "a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92",
            "mrtrunghieu1/Code-Training/data/bupa.dat",
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C54G67"),
        note="The papers do not agree which class is positive; UCI meant the selector as a split.",
    ),
    _credit_approval,
    replace(
        _credit_approval,
        name="crx-complete",
        title="Credit Approval, complete rows",
        folder="crx",
        rows=653,
        prepared=46,
        classes=(("+", 296), ("-", 357)),
        missing=0,
        complete_rows=True,
    ),
    Source(
        name="nursery",
        title="Nursery",
        columns=_words("parents has_nurs form children housing finance social health class"),
        rows=12960,
        prepared=27,
        classes=(
            ("not_recom", 4320),
            ("priority", 4266),
            ("spec_prior", 4044),
            ("very_recom", 328),
            ("recommend", 2),
        ),
        categorical=_words("parents has_nurs form children housing finance social health"),
        files=_uci(
            "nursery/nursery.data",
            "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d",
            "mikeizbicki/datasets/csv/uci/nursery.data~",
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C5P88W"),
        note='`positive="not_recom"` has 4,320 positives.',
    ),
    _hepatitis,
    replace(
        _hepatitis,
        name="hepatitis-complete",
        title="Hepatitis, complete rows",
        folder="hepatitis",
        rows=138,
        prepared=15,
        classes=(("1", 26), ("2", 112)),
        missing=0,
        left_out=_words("protime alk_phosphate albumin liver_firm"),
        complete_rows=True,
        note="Positive: died. Without the four columns with the most gaps.",
    ),
    Source(
        name="zoo",
        title="Zoo",
        columns=_words(
            "name hair feathers eggs milk airborne aquatic predator toothed backbone breathes "
            "venomous fins legs tail domestic catsize type"
        ),
        target="type",
        rows=101,
        prepared=16,
        classes=(("1", 41), ("2", 20), ("3", 5), ("4", 13), ("5", 4), ("6", 8), ("7", 10)),
        left_out=("name",),
        files=_uci(
            "zoo/zoo.data", "cddc71c26ab9bc82795b8f4ff114cade41885d92720c6af29ffb69bcf73f0315"
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C5R59V"),
        note='`positive="1"` takes the 41 mammals for positive.',
    ),
    Source(
        name="parkinsons",
        title="Parkinsons",
        columns=_words(
            "name MDVP:Fo(Hz) MDVP:Fhi(Hz) MDVP:Flo(Hz) MDVP:Jitter(%) MDVP:Jitter(Abs) MDVP:RAP "
            "MDVP:PPQ Jitter:DDP MDVP:Shimmer MDVP:Shimmer(dB) Shimmer:APQ3 Shimmer:APQ5 MDVP:APQ "
            "Shimmer:DDA NHR HNR status RPDE DFA spread1 spread2 D2 PPE"
        ),
        target="status",
        rows=195,
        prepared=22,
        classes=(("0", 48), ("1", 147)),
        positive="1",
        left_out=("name",),
        header=("status",),
        files=_uci(
            "parkinsons/parkinsons.data",
            "a36116c2deac07895b79ce97a2f99a1b3720ac4892995ff5c3b9ccb397ed2bc5",
            "sumantaPaul2003/HealthCheck/parkinsons.data",
        ),
        origin="UCI",
        licence=_CC_BY,
        citation=_doi("C59C74"),
        note="Positive: Parkinson's disease. About six recordings of each person.",
    ),
    Source(
        name="soybean-small",
        title="Soybean (Small)",
        columns=_words(
            "date plant-stand precip temp hail crop-hist area-damaged severity seed-tmt "
            "germination plant-growth leaves leafspots-halo leafspots-marg leafspot-size "
            "leaf-shread leaf-malf leaf-mild stem lodging stem-cankers canker-lesion "
            "fruiting-bodies external-decay mycelium int-discolor sclerotia fruit-pods fruit-spots "
            "seed mold-growth seed-discolor seed-size shriveling roots class"
        ),
        rows=47,
        prepared=35,
        classes=(("D1", 10), ("D2", 10), ("D3", 10), ("D4", 17)),
        header=("outcome",),
        files=(
            _file(
                "soybean-small.data",
                "e183b5fed2dbf57bb28589fa929efc7a302453f2c2c8ba086ffcd8922a97038a",
                None,
                "vishwesh-D-kumar/NaiveBayesClassifier/soybean-small.data",
            ),
        ),
        origin="UCI (there without the header line of this copy)",
        licence=_CC_BY,
        citation="UCI Machine Learning Repository, data set 91",
        note='`positive="D4"` has 17 positives. 14 columns are constant; codes taken as numbers.',
    ),
    Source(
        name="leukemia",
        title="Leukemia (ALL or AML)",
        columns=(),
        rows=72,
        prepared=7129,
        classes=(("ALL", 47), ("AML", 25)),
        positive="AML",
        form="leukemia",
        files=tuple(
            _file(name, checksum, None, f"tkhan11/Gene-Expression-Classification/{name}")
            for name, checksum in (
                (
                    "data_set_ALL_AML_train.csv",
                    "7c8b432b4af99e68f923c53e289c73f1834986b05d80c2c43502053d8fca9f2c",
                ),
                (
                    "data_set_ALL_AML_independent.csv",
                    "38bd56674360e5765840c579622fc0be2650780c0d6ef46f8601074e96677bd3",
                ),
                (
                    "actual.csv",
                    "af291eced4116e257af0b73043e83b55d9b42f0d815440a4c5bc72424d2f44e1",
                ),
            )
        ),
        origin="Golub et al., as posted on Kaggle",
        licence=_UNSTATED,
        citation="Golub et al. (1999), Science 286, 531-537",
        note="7,129 genes.",
    ),
)

CATALOG = {
    source.name: source if source.folder else replace(source, folder=source.name)
    for source in _SOURCES
}
"""Every data set by its name."""
